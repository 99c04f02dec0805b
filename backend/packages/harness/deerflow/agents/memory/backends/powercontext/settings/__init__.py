"""What the operator set: variables, the bindings file, YAML. Read once per process, valid as a whole or refused."""
