// Package embedded runs a PostgreSQL server of one's own in a temporary folder,
// for the demo and for tests. It is a real server, found on the machine or
// fetched, so that it can be stopped, killed and started again on its data.
//
// # What holds
//
//   - The server listens on the loopback address and on a socket in its folder
//     only, and trusts whoever reaches it. It is no place for data of worth.
//   - PostgreSQL refuses to run as root. Started by root, the server runs as the
//     account postgres, else nobody, in a folder that belongs to that account.
//   - The server does not outlive the program. Its parent is a shell that holds
//     one end of a pipe; when the program ends, in whichever way, the pipe ends,
//     and the shell shuts the server down and removes its folder. (Linux's
//     parent-death signal would not do: it is tied to the thread that started
//     the child, and Go ends threads.)
//
// # Durability
//
// A commit survives [Server.Kill]: synchronous_commit and full_page_writes stay
// on, so what was answered is in the write-ahead log, and a page that was half
// written when the process died is repaired from it. Only fsync is off: it
// guards against the fall of the machine, and that takes the temporary folder
// too. Options.Settings has the last word.
//
// # A disk of its own
//
// With Options.Room the data lies on a file system of its own, which can be made
// full and free. A program that is killed leaves it behind, empty: the shell that
// removes the folder has no right to unmount.
//
// # Other moments and other servers
//
// With Options.Archive a server can be brought back to an earlier moment, at the
// same address: [Server.Backup], [Server.RestorePoint], [Server.Restore].
// [Server.Standby] starts a second server that follows the first one behind its
// commits; [Server.Detach] lets it miss what comes, and [Server.Promote] makes it
// a server in its own right. Together they are what happens to a database whose
// last commits are lost.
package embedded
