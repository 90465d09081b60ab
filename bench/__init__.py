"""How fast linkwise is, beside other libraries, on the machine at hand."""
