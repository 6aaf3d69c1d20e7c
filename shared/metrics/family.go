package metrics

import "strconv"

// other stands for every label value that is not in its set.
const other = "other"

// set is the closed list of the values of one label. A value that is not in the list is
// counted as other, so nothing that a peer sends can become a label.
type set struct {
	values []string // other is the last one
	index  map[string]int
}

func newSet(values ...string) *set {
	s := &set{index: map[string]int{}}
	add := func(v string) {
		if _, ok := s.index[v]; !ok {
			s.index[v] = len(s.values)
			s.values = append(s.values, v)
		}
	}
	for _, v := range values {
		if v != other && v != "" {
			add(v)
		}
	}
	add(other)
	return s
}

// of returns the index of a value.
func (s *set) of(v string) int {
	if i, ok := s.index[v]; ok {
		return i
	}
	return len(s.values) - 1
}

// family is a metric with labels whose children are all made in advance, so that finding
// one costs a map lookup per label and no allocation, and a counter is scraped at 0
// before it is at 1.
type family[C any] struct {
	sets     []*set
	children []C // row by row; the last label varies fastest
}

func newFamily[C any](child func(labels ...string) C, sets ...*set) *family[C] {
	f := &family[C]{sets: sets}
	labels := make([]string, len(sets))
	var fill func(depth int)
	fill = func(depth int) {
		if depth == len(sets) {
			f.children = append(f.children, child(labels...))
			return
		}
		for _, v := range sets[depth].values {
			labels[depth] = v
			fill(depth + 1)
		}
	}
	fill(0)
	return f
}

func (f *family[C]) one(a string) C {
	return f.children[f.sets[0].of(a)]
}

func (f *family[C]) two(a, b string) C {
	i := f.sets[0].of(a)
	i = i*len(f.sets[1].values) + f.sets[1].of(b)
	return f.children[i]
}

func (f *family[C]) three(a, b, c string) C {
	i := f.sets[0].of(a)
	i = i*len(f.sets[1].values) + f.sets[1].of(b)
	i = i*len(f.sets[2].values) + f.sets[2].of(c)
	return f.children[i]
}

// nested is a family of two labels where the values of the second depend on the first
// (each dialect has its own kinds of frames).
type nested[C any] struct {
	outer    *set
	children []*family[C]
}

func newNested[C any](child func(labels ...string) C, outer *set, inner map[string][]string) *nested[C] {
	n := &nested[C]{outer: outer}
	for _, o := range outer.values {
		n.children = append(n.children, newFamily(func(labels ...string) C {
			return child(o, labels[0])
		}, newSet(inner[o]...)))
	}
	return n
}

func (n *nested[C]) two(a, b string) C {
	return n.children[n.outer.of(a)].one(b)
}

// byNumber is a family of one label whose values are numbers.
type byNumber[N ~int | ~uint16, C any] struct {
	children map[N]C
	other    C
}

func newByNumber[N ~int | ~uint16, C any](child func(labels ...string) C, numbers []N) *byNumber[N, C] {
	b := &byNumber[N, C]{children: map[N]C{}, other: child(other)}
	for _, n := range numbers {
		b.children[n] = child(strconv.Itoa(int(n)))
	}
	return b
}

func (b *byNumber[N, C]) one(n N) C {
	if c, ok := b.children[n]; ok {
		return c
	}
	return b.other
}
