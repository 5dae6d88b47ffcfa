package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/sinks"
)

func (a *app) lintCommand() *cobra.Command {
	var allowPosition bool
	cmd := &cobra.Command{
		Use:   "lint FILE",
		Short: "Say what makes each effect happen once",
		Long: `lint looks at the pipeline file and at the tables, and prints for each sink what
becomes of an effect that is applied twice, and what stands against it:

  set-state     it sets what a message says: twice is once, by nature
  insert-once   it appends, and a unique index refuses the second time
  accumulate    it adds once more each time: the idempotency key alone protects it
  opaque        a statement of your own, which nobody can look into; so does it

It warns of hidden inputs that it can see, by which the same message would not have
the same effect again: clocks, random numbers, sequences, triggers.

It notes where the ledger's keys could be spared (guard: constraint), and what that
would give up.

It exits with 2 where a sink that accumulates has a key by position only. Such a key
finds a redelivery by the broker. A message that a producer sends twice is another
position, and would be added twice.`,
		Example: `  oncestream lint payments.yaml
  oncestream lint payments.yaml --allow-position`,
		Args: oneFile,
	}
	flags := configFlags(cmd, "brokers", "topic", "database-url", "schema")
	cmd.Flags().BoolVar(&allowPosition, "allow-position", false, "accept a key by position: the producer never sends a message twice")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadConfig(args[0], flags(), a.env)
		if err != nil {
			return err
		}
		return a.lint(cmd.Context(), c, allowPosition)
	}
	return cmd
}

func (a *app) lint(ctx context.Context, c *config, allowPosition bool) error {
	var l linter
	err := withConn(ctx, c.engine.Postgres.URL, func(conn *pgx.Conn) error {
		if _, err := c.pipeline(ctx, conn); err != nil { // the order of the sinks counts too
			return err
		}
		built, err := c.buildSinks(ctx, conn)
		if err != nil {
			return err
		}
		l = linter{config: c, allowPosition: allowPosition}
		return l.look(ctx, conn, built)
	})
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SINK\tKIND\tGUARD")
	for _, line := range l.lines {
		fmt.Fprintln(w, line)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, warning := range l.warnings {
		fmt.Fprintln(a.stdout, "warning:", warning)
	}
	if l.note != "" {
		fmt.Fprintln(a.stdout, "note:", l.note)
	}
	return l.refused.err()
}

// linter gathers what there is to say of sinks.
type linter struct {
	config        *config
	allowPosition bool
	lines         []string
	warnings      faults
	refused       faults
	note          string
}

func (l *linter) look(ctx context.Context, conn *pgx.Conn, built []*sinkBuilder) error {
	l.spare(built[0])
	for _, b := range built {
		kind := sinks.KindOf(b.made)
		l.lines = append(l.lines, fmt.Sprintf("%s\t%s\t%s", b.name(), kind, b.guard(kind)))
		if l.config.key.position && (kind == sinks.Accumulate || kind == sinks.Opaque) && !l.allowPosition {
			l.refused = append(l.refused, l.config.at(b.sink.path,
				"it adds, and key: {position: true} does not find what a producer sends twice: that has another position. Take a key that the producer chooses, or say --allow-position if it never does"))
		}
		l.hidden(b)
		if b.table == nil {
			continue
		}
		inputs, err := readHiddenInputs(ctx, conn, b.table)
		if err != nil {
			return err
		}
		for _, text := range inputs.texts(b.written, b.sink.kind) {
			l.warn(b.sink.path, "%s", text)
		}
	}
	return nil
}

// spare says where the keys could be spared, and what that gives up.
func (l *linter) spare(first *sinkBuilder) {
	c, s := l.config, first.sink
	if s.kind != "insert" || s.where != "" || s.onConflict == "ignore" || c.byConstraint() || sinks.KindOf(first.made) != sinks.InsertOnce {
		return
	}
	l.note = c.at(s.path, "guard: constraint is possible, since the unique index on %s holds the key: no key is written then, which is faster. "+
		"It gives up the cause of a duplicate, the telling of a key that is used again for another payload, stored results and keys.retain; "+
		"and a row that is deleted comes back with its message", first.keyIndex()).String()
}

func (l *linter) warn(path, format string, args ...any) {
	l.warnings = append(l.warnings, l.config.at(path, format, args...))
}

// hidden warns of what the file itself shows.
func (l *linter) hidden(b *sinkBuilder) {
	if found := hiddenInput(b.sink.sql.statement); found != "" {
		l.warn(b.sink.path+".statement", "%s answers differently each time: take $time, the record's own, or a field", found)
	}
	if b.sink.kind == "upsert" && b.sink.version == "" {
		l.warn(b.sink.path, "there is no version: a dead letter is not replayed behind newer state, and of messages of one row in two partitions the last one committed wins")
	}
}

// name is the place in the file with what is written to.
func (b *sinkBuilder) name() string {
	switch s := b.sink; s.kind {
	case "sql":
		return s.path
	case "ledger":
		return s.path + " " + s.ledger.entries
	default:
		return s.path + " " + s.table
	}
}

// guard says what stands against an effect that is applied twice.
func (b *sinkBuilder) guard(kind sinks.Kind) string {
	key := "idempotency key (" + b.config.keyText() + ")"
	switch {
	case b.isGuard():
		return "unique index on " + b.keyIndex() + ", which is the only guard"
	case b.config.byConstraint():
		key = "what " + b.config.sinks[0].path + " finds new"
	}
	switch {
	case kind == sinks.SetState:
		return "natural; " + key
	case kind != sinks.InsertOnce:
		return key
	case b.sink.onConflict == "ignore":
		return "any unique index of the table; " + key
	}
	return "unique index on " + b.keyIndex() + "; " + key
}

// keyIndex returns the columns of the unique index that holds the key.
func (b *sinkBuilder) keyIndex() string {
	for _, index := range b.table.UniqueKeys {
		if b.isKey(index) {
			return "(" + strings.Join(index, ", ") + ")"
		}
	}
	return "the key's columns"
}

// isKey reports whether the columns are written from exactly what the key is
// made of.
func (b *sinkBuilder) isKey(index []string) bool {
	from := map[string]bool{}
	for _, name := range index {
		from[b.written[name]] = true
	}
	sources := b.config.keySources()
	for _, s := range sources {
		if !from[s] {
			return false
		}
	}
	return len(sources) == len(index)
}

// keyText says what the idempotency key is, in the words of the file.
func (c *config) keyText() string {
	switch k := c.key; {
	case k.position:
		return "position"
	case k.recordKey:
		return "record_key"
	case k.header != "":
		return "header " + k.header
	case k.field != "":
		return "field " + k.field
	}
	return "join " + strings.Join(c.key.join, ", ")
}
