//! The two stages of the path that are durable: open and close, and what stands in for them when
//! nothing was started or the process that ran it is gone.

use glovebox_model::{Code, Error, Exec, ExecId, Result, SpaceId, Stage, Status};

use crate::failure::{at, internal};
use crate::rows::{self, Arrival, StoredRecord};
use crate::store::Store;
use crate::summary;

/// Proof that an exec's intent is on disk. Nothing starts without one, and only
/// [`Store::plan`] makes one.
#[derive(Debug)]
#[must_use = "an exec that was opened must be closed"]
pub struct Opened {
    space_id: SpaceId,
    exec_id: ExecId,
}

impl Opened {
    pub fn space_id(&self) -> &SpaceId {
        &self.space_id
    }

    pub fn exec_id(&self) -> &ExecId {
        &self.exec_id
    }
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
        let mut record = record.clone();
        record.receipt = None;
        let open = || {
            if record.status.is_final() {
                return Err(internal(format!(
                    "an exec cannot be opened as `{}`",
                    record.status
                )));
            }
            let stored = StoredRecord::new(&record)?;
            let draft = summary::planned(owner, &record, &stored);
            let owner = owner.to_owned();
            self.write(move |chains| {
                rows::ensure_new(chains.connection(), &record)?;
                let link = chains.append(draft)?;
                let id = (record.ids.space_id, record.exec_id);
                rows::insert(
                    chains.connection(),
                    &id,
                    &owner,
                    &stored,
                    link,
                    Arrival::Open,
                )?;
                Ok(Opened {
                    space_id: id.0,
                    exec_id: id.1,
                })
            })
        };
        open().map_err(at(Stage::Open))
    }

    /// Writes the end of an exec and returns the record with its receipt. An exec ends once:
    /// closing one that has ended is a conflict.
    pub fn close(&self, opened: Opened, mut record: Exec) -> Result<Exec, Unclosed> {
        record.receipt = None;
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
        if record.exec_id != opened.exec_id || record.ids.space_id != opened.space_id {
            return Err(internal(format!(
                "exec `{}` cannot be closed as `{}`",
                opened.exec_id, record.exec_id
            )));
        }
        ensure_final(record)?;
        let stored = StoredRecord::new(record)?;
        let draft = summary::outcome(record, &stored);
        let id = (opened.space_id.clone(), opened.exec_id.clone());
        self.write(move |chains| {
            rows::ensure_open(chains.connection(), &id.0, &id.1)?;
            let link = chains.append(draft)?;
            rows::close(chains.connection(), &id, &stored, link)?;
            Ok(link.receipt())
        })
    }

    /// Writes an exec that was never started: row and entry at once.
    pub fn refuse(&self, mut record: Exec) -> Result<Exec> {
        record.receipt = None;
        let refuse = || {
            ensure_final(&record)?;
            let stored = StoredRecord::new(&record)?;
            let draft = summary::refused(&record, &stored);
            let record = record.clone();
            self.write(move |chains| {
                rows::ensure_new(chains.connection(), &record)?;
                let link = chains.append(draft)?;
                let id = (record.ids.space_id, record.exec_id);
                rows::insert(chains.connection(), &id, "", &stored, link, Arrival::Final)?;
                Ok(link.receipt())
            })
        };
        let receipt = refuse().map_err(at(Stage::Close))?;
        record.receipt = Some(receipt);
        Ok(record)
    }

    /// Closes what a dead owner left open as `lost`, in every space. Doing it twice is harmless.
    pub fn recover(&self, dead_owner_id: &str) -> Result<Vec<Exec>> {
        let owner = dead_owner_id.to_owned();
        self.write(move |chains| {
            let mut lost = rows::open_of(chains.connection(), &owner)?;
            for record in &mut lost {
                record.status = Status::Lost;
                record.ended_at = Some(chains.now());
                record.error = Some(
                    Error::new(
                        Code::Lost,
                        Stage::Run,
                        "the process that ran this exec is gone and its outcome is unknown",
                    )
                    .hint("look at the workspace before running it again")
                    .of_exec(record.exec_id.clone()),
                );
                let stored = StoredRecord::new(record)?;
                let link = chains.append(summary::recovered(record, &stored))?;
                let id = (record.ids.space_id.clone(), record.exec_id.clone());
                rows::close(chains.connection(), &id, &stored, link)?;
                record.receipt = Some(link.receipt());
            }
            Ok(lost)
        })
        .map_err(at(Stage::Close))
    }
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
