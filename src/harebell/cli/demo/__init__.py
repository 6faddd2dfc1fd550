"""`harebell demo`: a month of flights through a broker, and what they say as a picture."""
