package sinks

import (
	"github.com/oncestream/oncestream/schema"
)

// upsertMemory is the memory that one Apply uses. What became of each key is
// kept as cells, encoded once: a message with a bad value is found also where a
// later one of its key hides the value, so that no fault depends on how the log
// was cut into batches.
type upsertMemory struct {
	keys    *fold
	arena   []byte // of all cells
	key     []byte // scratch: the key of a message
	cells   cells  // scratch: the row of a message
	states  []state
	backing cells // of the rows of all states
	rows    *rowset
	deletes *rowset
}

// state is what the batch says of one key so far.
type state struct {
	row     cells
	record  *schema.Record // the last one that wrote
	deleted bool           // a tombstone came
	written bool           // a value came, after the last tombstone
}

func newUpsertMemory(targets []target) *upsertMemory {
	return &upsertMemory{
		keys: newFold(), cells: make(cells, len(targets)),
		rows: newRowset(targets), deletes: newRowset(targets),
	}
}

func (m *upsertMemory) reset() {
	m.keys.reset()
	m.arena = m.arena[:0]
	clear(m.states)
	m.states = m.states[:0]
	clear(m.backing)
	m.backing = m.backing[:0]
	m.rows.reset()
	m.deletes.reset()
}

// state returns the state of the key whose cells are in m.cells.
func (m *upsertMemory) state(key []int) *state {
	m.key = m.key[:0]
	for _, i := range key {
		m.key = append(m.key, m.cells[i]...)
	}
	place, added := m.keys.place(m.key)
	if added {
		start := len(m.backing)
		m.backing = append(m.backing, make(cells, len(m.cells))...)
		m.states = append(m.states, state{row: m.backing[start:len(m.backing):len(m.backing)]})
	}
	return &m.states[place]
}

// fold adds one message to the state of its key.
func (p *upsertPlan[T]) fold(m *upsertMemory, msg *schema.Message[T]) (err error) {
	if msg.Tombstone() {
		return p.foldTombstone(m, msg)
	}
	if m.arena, err = p.encoder.encode(m.arena, m.cells, msg); err != nil {
		return err
	}
	if err := p.encoder.keyed(m.cells, msg.Record); err != nil {
		return err
	}
	if p.mode == Replace {
		if err := p.encoder.complete(m.cells, msg.Record); err != nil {
			return err
		}
	}
	st := m.state(p.key)
	for i, cell := range m.cells {
		if len(cell) > 0 || p.mode == Replace {
			st.row[i] = cell
		}
	}
	st.written, st.record = true, msg.Record
	return nil
}

func (p *upsertPlan[T]) foldTombstone(m *upsertMemory, msg *schema.Message[T]) error {
	switch p.tombstone {
	case TombstoneIgnore:
		return nil
	case TombstoneError:
		return schema.Faultf(msg.Record, schema.ReasonTombstone, "tombstones are set to be errors")
	case TombstoneDelete:
	}
	clear(m.cells)
	for _, i := range p.key {
		start := len(m.arena)
		v, err := p.tombstoneKey(i, msg)
		if err == nil {
			m.arena, err = p.encoder.value(m.arena, i, msg.Record, v)
		}
		if err != nil {
			return err
		}
		m.cells[i] = m.arena[start:len(m.arena):len(m.arena)]
	}
	if err := p.encoder.keyed(m.cells, msg.Record); err != nil {
		return err
	}
	st := m.state(p.key)
	copy(st.row, m.cells)
	st.deleted, st.written, st.record = true, false, msg.Record
	return nil
}

// tombstoneKey returns the value of a key's column for a message without body.
func (p *upsertPlan[T]) tombstoneKey(i int, msg *schema.Message[T]) (schema.Value, error) {
	c := &p.encoder.columns[i]
	if c.OfRecord {
		v, err := c.Value(msg)
		if err != nil {
			return v, blame(err, msg.Record, c.Field, c.Name)
		}
		return v, nil
	}
	why := "the record has no key to delete by"
	if len(p.key) == 1 && msg.Key != nil {
		return bytesValue(msg.Key), nil
	} else if len(p.key) > 1 {
		why = "a tombstone has no field for one of several key columns: map the column to a pseudo-field"
	}
	f := schema.Faultf(msg.Record, schema.ReasonTombstone, "%s", why)
	f.Field, f.Column = c.Field, c.Name
	return schema.Value{}, f
}

// fill makes the parameters, by key.
func (p *upsertPlan[T]) fill(m *upsertMemory) {
	for _, place := range m.keys.sorted() {
		st := &m.states[place]
		if st.deleted {
			clear(m.cells)
			for _, i := range p.key {
				m.cells[i] = st.row[i]
			}
			m.deletes.add(m.cells, st.record)
		}
		if st.written {
			m.rows.add(st.row, st.record)
		}
	}
}
