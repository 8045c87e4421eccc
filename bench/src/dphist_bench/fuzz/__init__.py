"""Every public function and command, given what Hypothesis makes of its signature and of a grammar of junk."""
