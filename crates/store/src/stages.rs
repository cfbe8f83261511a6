//! The two stages of the path that are durable: open and close, and what stands in for them when
//! nothing was started or the process that ran it is gone.

use glovebox_model::{Code, Error, Exec, ExecId, Result, SpaceId, Stage, Status};

use crate::admission::{Admitted, Terms};
use crate::budget;
use crate::failure::{at, internal};
use crate::leases::{self, NOBODY};
use crate::ledger::chain::Chains;
use crate::request_keys::{self, RequestKey};
use crate::rows::{self, Arrival, StoredRecord, bare};
use crate::store::Store;
use crate::summary;

/// Proof that an exec's intent is on disk. Nothing starts without one, and only
/// [`Store::admit`] and [`Store::adopt_queued`] make one.
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

    fn id(&self) -> (SpaceId, ExecId) {
        (self.space_id.clone(), self.exec_id.clone())
    }

    fn ensure_of(&self, record: &Exec) -> Result<()> {
        if record.exec_id == self.exec_id && record.ids.space_id == self.space_id {
            return Ok(());
        }
        Err(internal(format!(
            "exec `{}` cannot go on as `{}`",
            self.exec_id, record.exec_id
        )))
    }
}

/// A queued exec of a dead owner that has a new one.
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
                        format!("exec `{}` was started already", id.1),
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
        let mut record = bare(record);
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
        self.write(move |chains| {
            let session = chains.session();
            let row = rows::ensure_open(session, &id.0, &id.1)?;
            rows::ensure_owned(&row, &owner, &id.1)?;
            leases::ensure_held(session, &owner)?;
            let link = chains.append(draft)?;
            rows::close(session, &id, &stored, link)?;
            if let Some((agent, used)) = used {
                budget::add(session, &id.0, &agent, chains.now(), used)?;
            }
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
        let mut record = bare(record);
        let refuse = || {
            ensure_final(&record)?;
            let stored = StoredRecord::new(&record)?;
            let draft = summary::refused(&record, &stored);
            let (record, key) = (record.clone(), key.cloned());
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
        let (dead, new) = (dead_owner.to_owned(), new_owner.to_owned());
        self.write(move |chains| {
            let session = chains.session();
            if new != NOBODY {
                leases::ensure_held(session, &new)?;
                leases::ensure_dead(session, &dead)?;
            }
            let mut adopted = Vec::new();
            for record in rows::open_of(session, &dead)? {
                let id = (record.ids.space_id.clone(), record.exec_id.clone());
                if record.status != Status::Queued {
                    continue;
                }
                let Some(sealed_call) = rows::kept_call(session, &id)? else {
                    continue;
                };
                let stored = StoredRecord::new(&record)?;
                chains.append(summary::adopted(&new, &dead, &record, &stored))?;
                rows::set_owner(session, &id, &new)?;
                adopted.push(Adopted {
                    opened: Opened::new(id, new.clone()),
                    record,
                    sealed_call,
                });
            }
            Ok(adopted)
        })
        .map_err(at(Stage::Open))
    }

    /// The execs of an owner that have not ended, in every space.
    pub fn open_execs(&self, owner: &str) -> Result<Vec<(SpaceId, ExecId)>> {
        self.read(|session| {
            let open = rows::open_of(session, owner)?.into_iter();
            Ok(open.map(|it| (it.ids.space_id, it.exec_id)).collect())
        })
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
            close_as_lost(chains, &mut record)?;
            Ok(Some(record))
        })
        .map_err(at(Stage::Close))
    }

    /// Closes what a dead owner left open as `lost`, in every space. Doing it twice is harmless.
    /// On a shared database its lease goes in the same moment, so that it can never come back.
    pub fn recover(&self, dead_owner_id: &str) -> Result<Vec<Exec>> {
        let owner = dead_owner_id.to_owned();
        self.write(move |chains| {
            let session = chains.session();
            leases::ensure_dead(session, &owner)?;
            let mut lost = rows::open_of(session, &owner)?;
            for record in &mut lost {
                close_as_lost(chains, record)?;
            }
            leases::remove(session, &owner)?;
            Ok(lost)
        })
        .map_err(at(Stage::Close))
    }
}

fn close_as_lost(chains: &mut Chains<'_>, record: &mut Exec) -> Result<()> {
    let error = if record.status == Status::Queued {
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
    let id = (record.ids.space_id.clone(), record.exec_id.clone());
    rows::close(chains.session(), &id, &stored, link)?;
    record.receipt = Some(link.receipt());
    Ok(())
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
