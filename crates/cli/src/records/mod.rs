//! Where records come from: the state directory, or the server that has it. Whoever prints them
//! does not know which.

mod here;
mod there;

use std::io::{Read, Write};
use std::time::Duration;

use glovebox_model::{Attempt, Effect, Exec, ExecId, Page, Result, SpaceId, Stream};
use glovebox_store::{
    Entry, EntryFilter, ExecFilter, Expectations, ExportFormat, Timeline, TimelineFilter,
    Verification,
};
use glovebox_workspace::RelPath;
use jiff::Timestamp;

use crate::context::Place;
use glovebox_api::client::Client;
use here::Here;
use there::There;

#[derive(Debug)]
pub(crate) enum Records {
    Here(Box<Here>),
    There(Box<There>),
}

impl Records {
    /// `None` where nothing was ever run.
    pub(crate) fn open(place: &Place) -> Result<Option<Self>> {
        Ok(Here::open(place)?.map(|here| Self::Here(Box::new(here))))
    }

    pub(crate) fn of_server(remote: Client) -> Self {
        Self::There(Box::new(There::new(remote)))
    }

    pub(crate) fn list(&self, filter: &ExecFilter) -> Result<Page<Exec>> {
        match self {
            Self::Here(here) => here.store().list(here.space(), filter),
            Self::There(there) => there.list(filter),
        }
    }

    /// By its id, enough of the beginning of it, or its caller's own.
    pub(crate) fn find(&self, name: &str) -> Result<Exec> {
        match self {
            Self::Here(here) => here.get(&here.resolve(name)?),
            Self::There(there) => there.find(name),
        }
    }

    pub(crate) fn resolve(&self, name: &str) -> Result<ExecId> {
        match self {
            Self::Here(here) => here.resolve(name),
            Self::There(there) => there.find(name).map(|exec| exec.exec_id),
        }
    }

    pub(crate) fn again(&self, exec: &Exec) -> Result<Exec> {
        match self {
            Self::Here(here) => here.get(&exec.exec_id),
            Self::There(there) => there.again(exec),
        }
    }

    /// How long to wait before looking again: a server is asked less often than a file.
    pub(crate) fn pause(&self, usual: Duration) -> Duration {
        match self {
            Self::Here(_) => usual,
            Self::There(_) => usual * 4,
        }
    }

    /// When it arrived. Its record has a time only once it ended, and none if it never started.
    pub(crate) fn opened_at(&self, exec: &Exec) -> Result<Option<Timestamp>> {
        match self {
            Self::Here(here) => here.opened_at(exec),
            Self::There(there) => there.opened_at(exec),
        }
    }

    /// Whether the process that ran it is gone without having said how it ended. The next run
    /// writes that down; a server has done so before it answers.
    pub(crate) fn is_abandoned(&self, exec: &Exec) -> Result<bool> {
        match self {
            Self::Here(here) => here.is_abandoned(exec),
            Self::There(_) => Ok(false),
        }
    }

    /// What it printed, from the first byte on. Read to its end, it may go on later.
    pub(crate) fn output<'r>(
        &'r self,
        exec: &Exec,
        stream: Stream,
    ) -> Result<Option<Box<dyn Read + 'r>>> {
        match self {
            Self::Here(here) => Ok(here
                .output(exec, stream)?
                .map(|file| Box::new(file) as Box<dyn Read>)),
            Self::There(there) => there.output(exec, stream),
        }
    }

    /// What it did to get out, from a place in the log on, and the place after that.
    pub(crate) fn network(&self, exec: &Exec, from: u64) -> Result<(Vec<Attempt>, u64)> {
        match self {
            Self::Here(here) => here.network(exec, from),
            Self::There(there) => there.network(exec, from),
        }
    }

    /// What it did, from a place in the log on, and the place after that.
    pub(crate) fn effects(&self, exec: &Exec, from: u64) -> Result<(Vec<Effect>, u64)> {
        match self {
            Self::Here(here) => here.effects(exec, from),
            Self::There(there) => there.effects(exec, from),
        }
    }

    /// A file that it left, as it lies there now.
    pub(crate) fn artifact(&self, exec: &Exec, path: &RelPath, out: &mut dyn Write) -> Result<()> {
        match self {
            Self::Here(here) => here.artifact(exec, path, out),
            Self::There(there) => there.artifact(exec, path, out),
        }
    }

    /// The newest entries, the newest last.
    pub(crate) fn tail(&self, most: usize) -> Result<Vec<Entry>> {
        match self {
            Self::Here(here) => here.store().tail(here.space(), most),
            Self::There(there) => there.tail(most),
        }
    }

    pub(crate) fn query(&self, filter: &EntryFilter) -> Result<Page<Entry>> {
        match self {
            Self::Here(here) => here.store().query(here.space(), filter),
            Self::There(there) => there.query(filter),
        }
    }

    pub(crate) fn timeline(&self, filter: &TimelineFilter) -> Result<Timeline> {
        match self {
            Self::Here(here) => here.store().timeline(here.space(), filter),
            Self::There(there) => there.timeline(filter),
        }
    }

    /// Of all spaces that may be seen, or of one.
    pub(crate) fn verify(
        &self,
        space: Option<&SpaceId>,
        expectations: &Expectations,
    ) -> Result<Verification> {
        match (self, space) {
            (Self::Here(here), None) => here.store().verify_all(expectations),
            (Self::Here(here), Some(space)) => here.store().verify(space, expectations),
            (Self::There(there), space) => there.verify(space, expectations),
        }
    }

    /// Writes the whole ledger, of all spaces that may be seen or of one, and returns the number of
    /// entries.
    pub(crate) fn export(
        &self,
        space: Option<&SpaceId>,
        format: ExportFormat,
        out: &mut dyn Write,
    ) -> Result<u64> {
        match (self, space) {
            (Self::Here(here), None) => here.store().export_all(format, out),
            (Self::Here(here), Some(space)) => here.store().export(space, format, out),
            (Self::There(there), space) => there.export(space, format, out),
        }
    }
}
