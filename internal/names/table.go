package names

// Table finds what belongs to a metric by its name. Most metrics that a component
// is asked about are none of its own: their names differ in length from all that
// are here, or in a letter, and to see that costs less than the hash that a map
// makes of every name (BenchmarkTable). It is written before it is read, and then
// safe for concurrent use.
type Table[T any] struct {
	byLength [][]row[T]
}

type row[T any] struct {
	name  string
	value T
}

// Put lets Get return v for the name, whatever it returned before.
func (t *Table[T]) Put(name string, v T) {
	for len(t.byLength) <= len(name) {
		t.byLength = append(t.byLength, nil)
	}
	rows := t.byLength[len(name)]
	for i := range rows {
		if rows[i].name == name {
			rows[i].value = v
			return
		}
	}
	t.byLength[len(name)] = append(rows, row[T]{name, v})
}

// Get returns what was put for the name, or the zero value.
func (t *Table[T]) Get(name string) (v T) {
	if len(name) >= len(t.byLength) {
		return v
	}
	rows := t.byLength[len(name)]
	for i := range rows {
		if rows[i].name == name {
			return rows[i].value
		}
	}
	return v
}
