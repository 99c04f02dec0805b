"""What the model can do, and the outcomes it may claim."""
