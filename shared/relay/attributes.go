package relay

// The names of the attributes of stored items. They are in the tables of every
// installation: a name never changes its meaning.

// AttrGeneration is the life of the group that an item of its partition belongs to;
// what bears another generation is left from a group that was deleted.
const AttrGeneration = "gen"

// Attributes of a member item. A removal item has some of them too.
const (
	attrRole      = "role" // what the member is in its dialect, as it is logged and counted
	attrState     = "st"   // the state that the dialect has given the member
	attrLane      = "lane" // the name of the member's lane, another one for each incarnation
	attrEpoch     = "ep"   // how many connections the member has had
	attrConn      = "conn" // the current connection; none while the member is offline
	attrConnState = "cs"   // whether that connection is draining (1) or open (2)
	attrPrevious  = "prev" // the connection that the current one has replaced: a removal closes both
	attrLeft      = "left" // the connection with which the member has left last
	attrSeen      = "seen" // when the member has left, in Unix milliseconds
	attrTail      = "tail" // the last number given out in the lane
	attrStored    = "n"    // how many stored frames are in the lane, expired ones included
	attrTransient = "tn"   // how many transient entries are in the lane
	attrToken     = "tok"  // the token of the push endpoint; none if the member gets no pushes
	attrPlatform  = "pf"   // the platform of the push endpoint

	attrDialect   = "x." // prefix of the attributes of the dialect
	attrFence     = "f." // prefix of the fences, before the lane of a sender
	attrLastFrame = "i." // prefix of the id of the last frame that a sender has put into the lane
	attrLastSeq   = "q." // prefix of the number of that frame
)

// Attributes of a removal item.
const (
	attrCloseCode = "code" // the code that the connections of the removed member are closed with
	attrReason    = "why"  // the reason that goes with it
	attrTold      = "told" // when the others were told, in Unix milliseconds; none until then
)

// Attributes of small items.
const (
	attrMember = "m" // of a root or removal item: the key of the member
	attrGroup  = "g" // of an item of the sweeper: the group to look at
	attrCount  = "n" // of an address: the connections within the window
)

// Attributes of the record of a connection.
const (
	recDialect       = "d"  // the name of the dialect
	recAt            = "at" // when the connection was made, in Unix milliseconds
	recGroup         = "g"  // the group of the member behind the connection; none until it joins
	recMember        = "m"  // the key of that member
	recEpoch         = "e"  // the epoch of the member with this connection
	recRole          = "r"  // the role of the member
	recLane          = "ln" // the lane that the member had when it joined
	recAdmitted      = "ok" // 1 when admission is complete
	recPrivate       = "p"  // what the dialect keeps
	recMessagesStart = "mw" // when the window that counts messages began
	recMessages      = "mn" // the messages in that window
	recControlStart  = "cw" // when the window that counts other frames began
	recControl       = "cn" // the other frames in that window
	recCounted       = "id" // the id of the frame that was counted last
	recAfter         = "af" // the connection whose last frames this one waits for
	recDone          = "dn" // the ids of the frames that were handled to the end, one a line
	recLeft          = "lf" // 1 when the member has left and all that follows is done
	recPosted        = "lp" // the last number of the lane that the pump has posted
	recPausedAt      = "lw" // the number whose confirmation the pump waits for
)

// Attributes of an entry in a lane.
const (
	entFrame  = "f"  // the frame, or a part of it
	entSender = "s"  // the key of the sending member
	entAt     = "at" // when the entry was written, in Unix milliseconds
	entText   = "t"  // 1 for a text frame
	entConn   = "c"  // the connection that a transient entry is bound to
	entEpoch  = "e"  // the epoch of that connection
	entLive   = "l"  // 1 if the sender is told when the entry is dropped
	entFirst  = "p1" // 1 in the first half of a frame that takes two items
	entSecond = "p2" // 1 in the second half
)
