package offsets

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// statements is all SQL on our own tables. The names are qualified instead of
// found by search_path, so that a user's table called "outbox" or "handler" is
// never taken for ours nor ours for the user's.
type statements struct {
	findHandler, addHandler             string
	started, start                      string
	claim, identity, reclaim            string
	release, halt, holder               string
	haltRefused, decided                string
	advance, look, account              string
	admit, admitAdvanced                string
	known, find                         [findPlans]string
	copy                                string
	progress                            string
	setAside, blocked, forget, results  string
	duplicates, deadLetters             string
	lastDeadLetter, countDeadLetters    string
	lock, resolve, resettle, setAsideAt string
	purgeTurn, purge, purgeNext, floors string
	findKey, keySizes, keySample        string
	standing, standingLocked            string
	change, changes, moves              string
	environment, environmentLocked      string
	label, relabel, noteLabel, labels   string
	oldestTransaction                   string
}

func newStatements(schema string) statements {
	table := func(name string) string { return pgx.Identifier{schema, name}.Sanitize() }
	in := strings.NewReplacer(
		"'$processed_message'", literal(table("processed_message")),
		"'$consumer_offset'", literal(table("consumer_offset")),
		"$key_floor", table("key_floor"),
		"$offset_change", table("offset_change"),
		"$environment_change", table("environment_change"),
		"$environment", table("environment"),
		"$consumer_offset", table("consumer_offset"),
		"$processed_message", table("processed_message"),
		"$handler", table("handler"),
		"$dead_letter", table("dead_letter"),
		"$duplicate_message", table("duplicate_message"),
	).Replace
	return statements{
		findHandler:   in(sqlFindHandler),
		addHandler:    in(sqlAddHandler),
		started:       in(sqlStarted),
		start:         in(sqlStart),
		claim:         in(sqlClaim),
		identity:      in(sqlIdentity),
		reclaim:       in(sqlReclaim),
		release:       in(sqlRelease),
		halt:          in(sqlHalt),
		holder:        in(sqlHolder),
		haltRefused:   in(sqlHaltRefused),
		decided:       in(sqlDecided),
		advance:       in(sqlAdvance),
		look:          in(sqlLook),
		account:       in(sqlAccount),
		admit:         in(sqlAdmit),
		admitAdvanced: in(sqlAdmitAdvanced),
		known:         findVariants(in(sqlFind)),
		find:          findVariants(in(sqlFind)),
		copy:          in(sqlCopy),
		progress:      in(sqlProgress),
		setAside:      in(sqlSetAside),
		blocked:       in(sqlBlocked),
		forget:        in(sqlForget),
		results:       in(sqlResults),
		duplicates:    in(sqlDuplicates),
		deadLetters:   in(sqlDeadLetters),
		lock:          in(sqlLock),
		resolve:       in(sqlResolve),
		resettle:      in(sqlResettle),
		setAsideAt:    in(sqlSetAsideAt),
		purgeTurn:     in(sqlPurgeTurn),
		purge:         in(sqlPurge),
		purgeNext:     in(sqlPurgeNext),
		floors:        in(sqlFloors),
		findKey:       in(sqlFindKey),
		keySizes:      in(sqlKeySizes),
		keySample:     in(sqlKeySample),

		standing:          in(sqlStanding),
		standingLocked:    in(sqlStandingLocked),
		change:            in(sqlChange),
		changes:           in(sqlChanges),
		moves:             in(sqlMoves),
		environment:       in(sqlEnvironment),
		environmentLocked: in(sqlEnvironmentLocked),
		label:             in(sqlLabel),
		relabel:           in(sqlRelabel),
		noteLabel:         in(sqlNoteLabel),
		labels:            in(sqlLabels),

		lastDeadLetter:    in(sqlLastDeadLetter),
		countDeadLetters:  in(sqlCountDeadLetters),
		oldestTransaction: in(sqlOldestTransaction),
	}
}

// literal is a text in SQL, for a name that a function takes.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
