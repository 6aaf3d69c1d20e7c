package relay_test
import ("testing";"fmt";mathrand "math/rand/v2";"slices";"os";"strconv";"encoding/hex")
func TestDbg(t *testing.T){
	seed, _ := strconv.ParseUint(os.Getenv("SEED"),10,64)
	s := newStage()
		random := mathrand.New(mathrand.NewPCG(seed, 0))
		tape := slices.Clone(household)
		tape[0] = byte(seed)
		for range 100 + random.IntN(400) {
			tape = append(tape, byte(random.UintN(256)))
		}
	s.reset()
	p := &play{stage: s, tape: tape}
	if p.next()%4 == 3 { p.front.outcome = 1 }
	dump := func() {
		for _, it := range func() (x []string) { items, _ := s.table.Everything(t.Context(), "g/"); for _, it := range items { x = append(x, fmt.Sprint(it.Key.Sort[:min(10,len(it.Key.Sort))], " conn=", it.Attrs["conn"].Str(), " cs=", it.Attrs["cs"].Num(), " ep=", it.Attrs["ep"].Num(), " lane=", it.Attrs["lane"].Str(), " tail=", it.Attrs["tail"].Num(), " n=",it.Attrs["n"].Num()," tn=",it.Attrs["tn"].Num())) ; for k,v := range it.Attrs { if len(k) > 2 && k[:2]=="f." { x[len(x)-1] += fmt.Sprint(" ",k,"=",v.Num()) } } }; return }() { fmt.Println("     ", it) }
	}
	for len(p.tape) > 0 {
		a := len(p.tape)
		before := p.tape
		gotBefore := map[string]int{}
		for _, l := range s.lines() { gotBefore[string(l.id)] = len(l.got) }
		sent := len(s.sent)
		p.step()
		if len(s.sent) > sent { fmt.Println("   letters", sent, "conns", s.sent[sent].conns) }
		for _, l := range s.lines() { if len(l.wire) > 0 { fmt.Println("   wire of", l.id, len(l.wire)) } }
		fmt.Println("step", before[0]%steps, before[:a-len(p.tape)][:min(8,a-len(p.tape))], "sent", sent, "..", len(s.sent), "conns", s.front.n)
		for _, l := range s.lines() { for _, f := range l.got[gotBefore[string(l.id)]:] { x := fmt.Sprintf("%T", f.GetFrame())[21:]; if m := f.GetMessage(); m != nil { x += fmt.Sprint(" from ", hex.EncodeToString(m.GetPeer()[:2]), " n=", hex.EncodeToString(m.GetCiphertext()[:4]), " live=", m.GetLive()) }; if e := f.GetError(); e != nil { x += e.GetCode() }; fmt.Println("   ", l.id, "closed", l.closed, x) } }
		if len(s.faults) > 0 { dump(); fmt.Println(s.faults); return }
	}
	p.comeHome()
	dump()
	fmt.Println(s.faults)
}
