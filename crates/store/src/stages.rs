//! The two stages of the path that are durable: open and close, and what stands in for them when
//! nothing was started or the process that ran it is gone.

use glovebox_model::{Code, Error, Exec, ExecId, Result, SpaceId, Stage, Status};

use crate::admission::{Admitted, Terms};
use crate::approval_rows;
use crate::budget;
use crate::failure::{at, internal};
use crate::leases::{self, NOBODY};
use crate::ledger::chain::Chains;
use crate::ledger::exec_proof::{forged, is_exec_forged};
use crate::outbox_rows::Happening;
use crate::registry;
use crate::request_keys::{self, RequestKey};
use crate::rows::{self, Arrival, StoredRecord, bare};
use crate::store::Store;
use crate::summary;

/// Proof that an exec's intent is on disk. Nothing starts without one, and only
/// [`Store::admit`], [`Store::await_approval`] and adopting make one.
#[derive(Debug)]
#[must_use = "an exec that was opened must be closed"]
pub struct Opened {
    space_id: SpaceId,
    exec_id: ExecId,
    owner: String,
}

impl Opened {
    pub(crate) fn new(id: (SpaceId, ExecId), owner: String) -> Self {
        Self {
            space_id: id.0,
            exec_id: id.1,
            owner,
        }
    }

    pub fn space_id(&self) -> &SpaceId {
        &self.space_id
    }

    pub fn exec_id(&self) -> &ExecId {
        &self.exec_id
    }

    pub(crate) fn id(&self) -> (SpaceId, ExecId) {
        (self.space_id.clone(), self.exec_id.clone())
    }

    pub(crate) fn ensure_of(&self, record: &Exec) -> Result<()> {
        if record.exec_id == self.exec_id && record.ids.space_id == self.space_id {
            return Ok(());
        }
        Err(internal(format!(
            "exec `{}` cannot go on as `{}`",
            self.exec_id, record.exec_id
        )))
    }
}

/// An exec of a dead owner that waits, and has a new one.
#[derive(Debug)]
pub struct Adopted {
    pub opened: Opened,
    pub record: Exec,
    pub sealed_call: Vec<u8>,
}

/// A refusal, written down.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one at a time, and nearly always the large one"
)]
pub enum Refused {
    /// The record with its receipt.
    Recorded(Exec),
    /// The same key with the same request made this exec before; nothing was written.
    Existing(ExecId),
}

/// An exec that could not be closed. It is still open: closing may be tried again with what is
/// given back here.
#[derive(Debug)]
pub struct Unclosed {
    pub error: Error,
    pub opened: Opened,
    pub record: Box<Exec>,
}

impl From<Unclosed> for Error {
    fn from(unclosed: Unclosed) -> Self {
        unclosed.error
    }
}

impl Store {
    /// Writes the row and the `planned` entry, durably and together. A client id or exec id that
    /// is taken is a conflict that names the exec which has it.
    pub fn plan(&self, owner: &str, record: &Exec) -> Result<Opened> {
        match self.admit(owner, record, Terms::default())? {
            Admitted::Opened(opened) => Ok(opened),
            Admitted::Existing(_) => Err(internal("a call without a key cannot be a repetition")),
        }
    }

    /// Writes that a queued exec is about to start, and forgets its sealed call. A conflict when it
    /// is not queued any more, or is another owner's.
    pub fn start(&self, owner: &str, opened: &Opened, record: &Exec) -> Result<()> {
        let record = bare(record.clone());
        let start = || {
            let record = self.masked(opened.space_id(), record)?;
            opened.ensure_of(&record)?;
            if record.status != Status::Running {
                return Err(internal(format!(
                    "an exec cannot start as `{}`",
                    record.status
                )));
            }
            let stored = StoredRecord::new(&record)?;
            let draft = summary::started(owner, &record, &stored);
            let (id, owner) = (opened.id(), owner.to_owned());
            self.write(move |chains| {
                let session = chains.session();
                leases::ensure_held(session, &owner)?;
                let row = rows::ensure_open(session, &id.0, &id.1)?;
                rows::ensure_owned(&row, &owner, &id.1)?;
                if row.status != Some(Status::Queued) {
                    return Err(Error::new(
                        Code::Conflict,
                        Stage::Open,
                        match row.status {
                            Some(Status::AwaitingApproval) => {
                                format!("exec `{}` waits for an approval", id.1)
                            }
                            _ => format!("exec `{}` was started already", id.1),
                        },
                    )
                    .of_exec(id.1));
                }
                chains.append(draft)?;
                rows::rewrite(session, &id, &stored)?;
                rows::forget_call(session, &id)
            })
        };
        start().map_err(at(Stage::Admit))
    }

    /// Writes the end of an exec and returns the record with its receipt. An exec ends once:
    /// closing one that has ended is a conflict.
    pub fn close(&self, opened: Opened, record: Exec) -> Result<Exec, Unclosed> {
        let mut record = match self.masked(opened.space_id(), bare(record.clone())) {
            Ok(record) => record,
            Err(mut error) => {
                error.stage = Stage::Close;
                return Err(Unclosed {
                    error,
                    opened,
                    record: Box::new(record),
                });
            }
        };
        match self.try_close(&opened, &record) {
            Ok(receipt) => {
                record.receipt = Some(receipt);
                Ok(record)
            }
            Err(mut error) => {
                error.stage = Stage::Close;
                Err(Unclosed {
                    error,
                    opened,
                    record: Box::new(record),
                })
            }
        }
    }

    fn try_close(&self, opened: &Opened, record: &Exec) -> Result<glovebox_model::ReceiptRef> {
        opened.ensure_of(record)?;
        ensure_final(record)?;
        let stored = StoredRecord::new(record)?;
        let draft = summary::outcome(record, &stored);
        let (id, owner) = (opened.id(), opened.owner.clone());
        let used = budget::used_by(record);
        let told = Happening::exec_ended(record);
        self.write(move |chains| {
            let session = chains.session();
            let row = rows::ensure_open(session, &id.0, &id.1)?;
            rows::ensure_owned(&row, &owner, &id.1)?;
            leases::ensure_held(session, &owner)?;
            if row.status == Some(Status::AwaitingApproval) {
                approval_rows::void_of(chains, &id, "the exec has ended")?;
            }
            let link = chains.append(draft)?;
            rows::close(session, &id, &stored, link)?;
            if let Some((agent, used)) = used {
                budget::add(session, &id.0, &agent, chains.now(), used)?;
            }
            told.tell(chains)?;
            Ok(link.receipt())
        })
    }

    /// Writes an exec that was never started: row and entry at once.
    pub fn refuse(&self, record: Exec) -> Result<Exec> {
        match self.refuse_with(record, None)? {
            Refused::Recorded(record) => Ok(record),
            Refused::Existing(_) => Err(internal("a call without a key cannot be a repetition")),
        }
    }

    /// As [`Store::refuse`], and remembers the request's key: asking again gives the same refusal.
    pub fn refuse_with(&self, record: Exec, key: Option<&RequestKey>) -> Result<Refused> {
        let space = record.ids.space_id.clone();
        let mut record = self
            .masked(&space, bare(record))
            .map_err(at(Stage::Close))?;
        let refuse = || {
            ensure_final(&record)?;
            let stored = StoredRecord::new(&record)?;
            let draft = summary::refused(&record, &stored);
            let (record, key) = (record.clone(), key.cloned());
            let told = Happening::exec_ended(&record);
            self.write(move |chains| {
                let session = chains.session();
                let space = &record.ids.space_id;
                if let Some(key) = &key
                    && let Some(id) = request_keys::exec_of(session, space, key)?
                {
                    return Ok(Err(id));
                }
                rows::ensure_new(session, &record)?;
                let link = chains.append(draft)?;
                let id = (record.ids.space_id, record.exec_id);
                rows::insert(session, &id, "", &stored, link, Arrival::Final)?;
                if let Some(key) = &key {
                    request_keys::keep_exec(chains, &id, "", key)?;
                }
                told.tell(chains)?;
                Ok(Ok(link.receipt()))
            })
        };
        Ok(match refuse().map_err(at(Stage::Close))? {
            Ok(receipt) => {
                record.receipt = Some(receipt);
                Refused::Recorded(record)
            }
            Err(id) => Refused::Existing(id),
        })
    }

    /// Gives the execs of a dead owner that wait for their turn, and whose call is kept, to another
    /// owner. To [`NOBODY`](crate::NOBODY) a living owner may give its own, too; whoever wants them
    /// adopts them from there.
    pub fn adopt_queued(&self, dead_owner: &str, new_owner: &str) -> Result<Vec<Adopted>> {
        self.adopt(dead_owner, new_owner, Status::Queued, |_| true)
    }

    /// The same for those of [`NOBODY`](crate::NOBODY) that the new owner can carry out.
    pub fn take_queued(
        &self,
        new_owner: &str,
        mine: impl Fn(&Exec) -> bool + Send + 'static,
    ) -> Result<Vec<Adopted>> {
        self.adopt(NOBODY, new_owner, Status::Queued, mine)
    }

    pub(crate) fn adopt(
        &self,
        dead_owner: &str,
        new_owner: &str,
        status: Status,
        mine: impl Fn(&Exec) -> bool + Send + 'static,
    ) -> Result<Vec<Adopted>> {
        let (dead, new) = (dead_owner.to_owned(), new_owner.to_owned());
        self.write(move |chains| {
            let session = chains.session();
            if new != NOBODY {
                leases::ensure_held(session, &new)?;
                leases::take_for_dead(session, &dead)?;
            }
            let mut adopted = Vec::new();
            for record in rows::open_of(session, &dead)? {
                if record.status != status || !mine(&record) {
                    continue;
                }
                match is_exec_forged(session, &record.ids.space_id, &record.exec_id)? {
                    true => close_as_forged(chains, record).map(|_| ())?,
                    false => adopted.extend(hand_over(chains, &dead, &new, record)?.ok()),
                }
            }
            Ok(adopted)
        })
        .map_err(at(Stage::Open))
    }

    /// The execs of an owner that have not ended, in every space.
    pub fn open_execs(&self, owner: &str) -> Result<Vec<(SpaceId, ExecId)>> {
        self.read(|session| rows::open_ids(session, owner))
    }

    /// Closes one exec of a living owner as `lost`: the owner knows nothing of it any more. `None`
    /// when it has ended meanwhile, or is another's.
    pub fn lose(&self, owner: &str, space: &SpaceId, id: &ExecId) -> Result<Option<Exec>> {
        let (owner, space, id) = (owner.to_owned(), space.clone(), id.clone());
        self.write(move |chains| {
            let open = rows::open_of(chains.session(), &owner)?;
            let own = |it: &Exec| it.ids.space_id == space && it.exec_id == id;
            let Some(mut record) = open.into_iter().find(own) else {
                return Ok(None);
            };
            if is_exec_forged(chains.session(), &space, &id)? {
                return close_as_forged(chains, record).map(Some);
            }
            close_as_lost(chains, &mut record)?;
            Ok(Some(record))
        })
        .map_err(at(Stage::Close))
    }

    /// Closes what a dead owner left open as `lost`, in every space; the sandboxes that it had
    /// standing are [`NOBODY`]'s from then on, and so are its execs that wait for their turn or for
    /// people: nothing of them ran. Doing it twice is harmless.
    /// On a shared database its lease goes in the same moment, so that it can never come back.
    pub fn recover(&self, dead_owner_id: &str) -> Result<Vec<Exec>> {
        let owner = dead_owner_id.to_owned();
        self.write(move |chains| {
            let session = chains.session();
            leases::take_for_dead(session, &owner)?;
            let mut lost = Vec::new();
            for record in rows::open_of(session, &owner)? {
                if is_exec_forged(session, &record.ids.space_id, &record.exec_id)? {
                    lost.push(close_as_forged(chains, record)?);
                    continue;
                }
                let left = if matches!(record.status, Status::Queued | Status::AwaitingApproval) {
                    hand_over(chains, &owner, NOBODY, record)?.err()
                } else {
                    Some(record)
                };
                if let Some(mut record) = left {
                    close_as_lost(chains, &mut record)?;
                    lost.push(record);
                }
            }
            registry::orphan(session, &owner)?;
            Ok(lost)
        })
        .map_err(at(Stage::Close))
    }
}

/// Gives an exec that waits to another owner. What has no call cannot go on, and is given back.
#[allow(
    clippy::result_large_err,
    reason = "both are large, and neither is an error"
)]
fn hand_over(
    chains: &mut Chains<'_>,
    from: &str,
    to: &str,
    record: Exec,
) -> Result<Result<Adopted, Exec>> {
    let session = chains.session();
    let id = (record.ids.space_id.clone(), record.exec_id.clone());
    let Some(sealed_call) = rows::kept_call(session, &id)? else {
        return Ok(Err(record));
    };
    let stored = StoredRecord::new(&record)?;
    chains.append(summary::adopted(to, from, &record, &stored))?;
    rows::set_owner(session, &id, to)?;
    Ok(Ok(Adopted {
        opened: Opened::new(id, to.to_owned()),
        record,
        sealed_call,
    }))
}

fn close_as_lost(chains: &mut Chains<'_>, record: &mut Exec) -> Result<()> {
    let id = (record.ids.space_id.clone(), record.exec_id.clone());
    if record.status == Status::AwaitingApproval {
        approval_rows::void_of(chains, &id, "the exec is lost")?;
    }
    let waited = matches!(record.status, Status::Queued | Status::AwaitingApproval);
    let error = if waited {
        Error::new(
            Code::Lost,
            Stage::Admit,
            "the server is gone in whose queue this exec waited: it never started",
        )
        .hint("nothing was done, so it is safe to run it again")
    } else {
        Error::new(
            Code::Lost,
            Stage::Run,
            "the process that ran this exec is gone and its outcome is unknown",
        )
        .hint("look at the workspace before running it again")
    };
    record.status = Status::Lost;
    record.ended_at = Some(chains.now());
    record.error = Some(error.of_exec(record.exec_id.clone()));
    let stored = StoredRecord::new(record)?;
    let link = chains.append(summary::recovered(record, &stored))?;
    rows::close(chains.session(), &id, &stored, link)?;
    Happening::exec_ended(record).tell(chains)?;
    record.receipt = Some(link.receipt());
    Ok(())
}

/// Ends an exec whose row is not as the entries about it say: nothing of it is run or vouched for,
/// and the entry says why.
fn close_as_forged(chains: &mut Chains<'_>, mut record: Exec) -> Result<Exec> {
    let id = (record.ids.space_id.clone(), record.exec_id.clone());
    approval_rows::void_of(chains, &id, "the exec was edited")?;
    record.status = Status::Error;
    record.ended_at = Some(chains.now());
    record.error = Some(
        forged(&id.1)
            .hint("look at the workspace before running it again")
            .of_exec(id.1.clone()),
    );
    let record = bare(record);
    let stored = StoredRecord::new(&record)?;
    let link = chains.append(summary::forged(&record, &stored))?;
    rows::close(chains.session(), &id, &stored, link)?;
    Happening::exec_ended(&record).tell(chains)?;
    let mut record = record;
    record.receipt = Some(link.receipt());
    Ok(record)
}

fn ensure_final(record: &Exec) -> Result<()> {
    if record.status.is_final() {
        return Ok(());
    }
    Err(internal(format!(
        "exec `{}` cannot end as `{}`",
        record.exec_id, record.status
    )))
}
