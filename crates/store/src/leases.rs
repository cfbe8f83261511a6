//! Which owners are alive. In a state directory the lock on an owner's file says it. On a shared
//! database an owner has a lease there, by the database's clock alone. One that ran out may be taken
//! from its owner, and goes with the first thing that is: from then on that owner writes nothing
//! more about execs, whatever it believes. Until then it may be renewed, however late.

use std::path::Path;
use std::time::Duration;

use glovebox_model::{Code, Error, Result, Stage};

use crate::failure::Doing;
use crate::registry;
use crate::sql::{Session, values};
use crate::store::Store;

/// Whose execs are everybody's: they wait for a server that adopts them.
pub const NOBODY: &str = "-";

const LEASED: &str = "SELECT EXISTS (SELECT 1 FROM owners WHERE owner_id = ?1
    AND expires_at > clock_timestamp())";

/// Only an owner that was never taken for dead may write about execs.
pub(crate) fn ensure_held(session: &Session, owner: &str) -> Result<()> {
    const HELD: &str = "SELECT EXISTS (SELECT 1 FROM owners WHERE owner_id = ?1)";
    if !session.is_shared()
        || session
            .exists(HELD, values![owner])
            .doing("read the lease")?
    {
        return Ok(());
    }
    Err(Error::new(
        Code::Lost,
        Stage::Open,
        "this server's lease ran out, and another server has taken over",
    )
    .hint("start it anew: what it left is recorded as lost, or waits for any server"))
}

/// What is left behind may be taken only from who is known to be dead, and who is taken for dead
/// stays so: the lease goes in the same moment. On a shared database that is decided here; in a state
/// directory the caller holds the dead owner's lock.
pub(crate) fn take_for_dead(session: &Session, owner: &str) -> Result<()> {
    if !session.is_shared() {
        return Ok(());
    }
    // Locked: a renewal that is under way comes before or after, and never in between.
    let alive: Option<bool> = session
        .row(
            "SELECT expires_at > clock_timestamp() FROM owners WHERE owner_id = ?1 FOR UPDATE",
            values![owner],
            |row| row.get(0),
        )
        .doing("read the lease")?;
    if alive != Some(true) {
        return remove(session, owner);
    }
    Err(Error::new(
        Code::Conflict,
        Stage::Open,
        format!("the server `{owner}` is alive"),
    )
    .hint("what it runs can be taken over when its lease has run out"))
}

pub(crate) fn remove(session: &Session, owner: &str) -> Result<()> {
    if session.is_shared() {
        session
            .execute("DELETE FROM owners WHERE owner_id = ?1", values![owner])
            .doing("end the lease")?;
    }
    Ok(())
}

pub(crate) fn is_alive(session: &Session, owners: &Path, owner: &str) -> Result<bool> {
    if session.is_shared() {
        return has_lease(session, owner);
    }
    Ok(!owner.is_empty() && owners.join(owner).exists())
}

fn has_lease(session: &Session, owner: &str) -> Result<bool> {
    session
        .exists(LEASED, values![owner])
        .doing("read the lease")
}

fn milliseconds(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis())
        .unwrap_or(i64::MAX)
        .min(1 << 40)
}

impl Store {
    /// Begins the lease of an owner. On SQLite its file says that it lives.
    pub fn enlist(&self, owner: &str, ttl: Duration) -> Result<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let (owner, ttl) = (owner.to_owned(), milliseconds(ttl));
        // Through the writers' lock, so that it comes before or after a recovery.
        self.write(move |chains| {
            chains
                .session()
                .execute(
                    "INSERT INTO owners (owner_id, expires_at)
                     VALUES (?1, clock_timestamp() + CAST(?2 AS BIGINT) * interval '1 millisecond')
                     ON CONFLICT (owner_id) DO UPDATE SET expires_at = excluded.expires_at",
                    values![&owner, ttl],
                )
                .doing("begin the lease")?;
            Ok(())
        })
    }

    /// `false`: another server has taken over, and nothing may be written about execs any more.
    pub fn renew(&self, owner: &str, ttl: Duration) -> Result<bool> {
        if !self.is_shared() {
            return Ok(true);
        }
        // Not through the writers' lock: a long queue of writers must not cost a life.
        let renewed = self.ask("renew the lease", |session| {
            session.execute(
                "UPDATE owners SET expires_at = clock_timestamp() + CAST(?2 AS BIGINT) * interval '1 millisecond'
                 WHERE owner_id = ?1",
                values![owner, milliseconds(ttl)],
            )
        })?;
        Ok(renewed == 1)
    }

    /// Ends a lease. What the owner left open is then a stray's, and the sandboxes that it had
    /// standing are nobody's.
    pub fn retire(&self, owner: &str) -> Result<()> {
        // A process that kept nothing is not made to wait for others.
        if !self.is_shared() && self.sandboxes_of_owner(owner)?.is_empty() {
            return Ok(());
        }
        let owner = owner.to_owned();
        self.write(move |chains| {
            let session = chains.session();
            registry::orphan(session, &owner)?;
            remove(session, &owner)
        })
    }

    /// Owners whose lease ran out, or that have none and left execs open or sandboxes standing.
    /// SQLite: none.
    pub fn expired_owners(&self) -> Result<Vec<String>> {
        if !self.is_shared() {
            return Ok(Vec::new());
        }
        let mut owners: Vec<String> = self.ask("look for dead servers", |session| {
            session.rows(
                "SELECT owner_id FROM owners WHERE expires_at <= clock_timestamp()
                 ORDER BY expires_at",
                &[],
                |row| row.get(0),
            )
        })?;
        owners.extend(self.owners_without_lease()?);
        Ok(owners)
    }

    /// Owners of open execs, or of sandboxes, that have no lease, not even one that ran out.
    pub(crate) fn owners_without_lease(&self) -> Result<Vec<String>> {
        self.ask("look for open execs", |session| {
            session.rows(
                "SELECT owner_id FROM (
                     SELECT owner_id FROM sandbox_execs
                     WHERE closed_seq IS NULL AND owner_id <> ?1
                     UNION SELECT owner_id FROM sandboxes WHERE owner_id IS NOT NULL) x
                 WHERE NOT EXISTS (SELECT 1 FROM owners o WHERE o.owner_id = x.owner_id)",
                values![NOBODY],
                |row| row.get(0),
            )
        })
    }
}
