"""What searches by predicted prices find, in measured prices."""
