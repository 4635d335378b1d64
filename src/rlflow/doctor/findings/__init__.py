"""One module for each thing that the doctor looks for; `doctor/finders.py` lists them."""
