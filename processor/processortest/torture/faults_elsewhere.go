package torture

// Rows that are no fault of the schedule, with the reason.
func elsewhere() []Fault {
	return []Fault{
		{Row: 24, Name: "protocols", What: "eager, cooperative and static members, and KIP-848", Why: "a group speaks one protocol: the broker tests of package processor go through all of them"},
		{Row: 25, Name: "two-versions", What: "two versions of the program at once", Why: "there is no earlier release; that an older program refuses a newer schema is tested in schema/tables"},
		{Row: 26, Name: "worker-clock", What: "the clock of a worker jumps an hour", Why: "a Go program asks the kernel for the time, where no library can stand between, and a namespace has no wall clock of its own"},
		{Row: 29, Name: "broker-disk-full", What: "no space for the log of Kafka", Why: "a broker without space for its log ends by itself: that is broker-kill, for longer"},
		{Row: 35, Name: "producer-repeats", What: "records sent again by the producer, by the same partition or another", Why: "one record in 20 of every run"},
		{Row: 36, Name: "poison", What: "records that cannot be handled, in seven ways", Why: "one record in 200 of every run"},
	}
}
