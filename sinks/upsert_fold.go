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
	backing cells // of the rows of all states and changes
	changes []change
	rows    *rowset
	deletes *rowset
	params  arrays // of the keys, for their versions
}

// state is what the batch says of one key so far.
type state struct {
	row     cells
	place   int    // of the last message that wrote
	deleted bool   // a tombstone came
	written bool   // a value came, after the last tombstone
	version []byte // the cell of the row's version; of no bytes where there is no row
	ended   []byte // the version of the first tombstone
}

// change is what one message says, kept until the versions of the rows are known.
type change struct {
	row       cells
	key       int // the place of the key
	place     int // of the message
	tombstone bool
}

func newUpsertMemory(targets []target) *upsertMemory {
	m := &upsertMemory{
		keys: newFold(), cells: make(cells, len(targets)),
		rows: newRowset(targets), deletes: newRowset(targets),
	}
	for i := range targets {
		if targets[i].key {
			m.params = append(m.params, &array{})
		}
	}
	return m
}

func (m *upsertMemory) reset() {
	m.keys.reset()
	m.arena = m.arena[:0]
	clear(m.states)
	m.states = m.states[:0]
	clear(m.backing)
	m.backing = m.backing[:0]
	clear(m.changes)
	m.changes = m.changes[:0]
	m.rows.reset()
	m.deletes.reset()
}

// row returns an empty row.
func (m *upsertMemory) row() cells {
	start := len(m.backing)
	m.backing = append(m.backing, make(cells, len(m.cells))...)
	return m.backing[start:len(m.backing):len(m.backing)]
}

// find returns the place of the key whose cells are in m.cells.
func (m *upsertMemory) find(key []int) int {
	m.key = m.key[:0]
	for _, i := range key {
		m.key = append(m.key, m.cells[i]...)
	}
	place, added := m.keys.place(m.key)
	if added {
		m.states = append(m.states, state{row: m.row()})
	}
	return place
}

// fold adds one message to the state of its key; with versions, when they are
// known.
func (p *upsertPlan[T]) fold(m *upsertMemory, place int, msg *schema.Message[T]) error {
	if msg.Tombstone() && p.tombstone == TombstoneIgnore {
		return nil
	}
	if err := p.read(m, msg); err != nil {
		return err
	}
	c := change{row: m.cells, key: m.find(p.key), place: place, tombstone: msg.Tombstone()}
	if p.version < 0 {
		p.enter(m, c)
		return nil
	}
	c.row = m.row()
	copy(c.row, m.cells)
	m.changes = append(m.changes, c)
	return nil
}

// read fills m.cells with what the message says.
func (p *upsertPlan[T]) read(m *upsertMemory, msg *schema.Message[T]) (err error) {
	switch {
	case !msg.Tombstone():
		m.arena, err = p.encoder.encode(m.arena, m.cells, msg)
	case p.tombstone == TombstoneError:
		return schema.Faultf(msg.Record, schema.ReasonTombstone, "tombstones are set to be errors")
	default:
		err = p.readTombstone(m, msg)
	}
	if err != nil {
		return err
	}
	if err := p.encoder.keyed(m.cells, msg.Record); err != nil {
		return err
	}
	if p.version >= 0 && len(m.cells[p.version]) == 0 {
		c := &p.encoder.columns[p.version]
		return absent(msg.Record, c.Field, c.Name, "missing")
	}
	if p.mode == Replace && !msg.Tombstone() {
		return p.encoder.complete(m.cells, msg.Record)
	}
	return nil
}

func (p *upsertPlan[T]) readTombstone(m *upsertMemory, msg *schema.Message[T]) (err error) {
	if m.arena, err = p.encoder.tombstone(m.arena, m.cells, msg); err != nil || p.version < 0 {
		return err
	}
	start := len(m.arena)
	if m.arena, err = p.encoder.cell(m.arena, p.version, msg); err == nil {
		m.cells[p.version] = m.arena[start:len(m.arena):len(m.arena)]
	}
	return err
}

// enter makes a change to the state of its key.
func (p *upsertPlan[T]) enter(m *upsertMemory, c change) {
	st := &m.states[c.key]
	st.place = c.place
	if c.tombstone {
		if p.version >= 0 && !st.deleted {
			st.ended = c.row[p.version]
		}
		copy(st.row, c.row)
		st.deleted, st.written, st.version = true, false, nil
		return
	}
	for i, cell := range c.row {
		if len(cell) > 0 || p.mode == Replace {
			st.row[i] = cell
		}
	}
	st.written = true
	if p.version >= 0 {
		st.version = c.row[p.version]
	}
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
			if p.version >= 0 {
				m.cells[p.version] = st.ended
			}
			m.deletes.add(m.cells, st.place)
		}
		if st.written {
			m.rows.add(st.row, st.place)
		}
	}
}
