"""One exchange over HTTP under one deadline. Nothing here knows PowerContext's operations, a Scope or DeerFlow."""
