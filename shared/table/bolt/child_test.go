package bolt

func runChild() bool { return false }
