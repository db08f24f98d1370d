"""What a flow does and what holds it back, in words."""
