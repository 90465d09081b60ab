"""One algorithm a file, written as sweeps over the links, over any scalar."""
