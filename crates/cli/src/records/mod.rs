//! Records of execs and the ledger, through the API: at a server, or in this process.

mod ledger;
mod output;

use std::cell::Cell;
use std::io::Write;
use std::time::Duration;

use glovebox_api::client::Client;
use glovebox_api::{EffectPage, NetworkPage, Target};
use glovebox_model::{Attempt, Code, Effect, Error, Exec, Page, Result, Stage, Stream};
use glovebox_store::{EntryFilter, ExecFilter};
use glovebox_workspace::RelPath;
use jiff::Timestamp;

pub(crate) use output::Output;

const EXECS: &str = "/v1/execs";
/// How many a listing has when nobody says.
const USUAL: usize = 50;
/// What the API gives at most in one page.
const MOST: usize = 1000;
/// Ids that are named when several begin alike.
const ALIKE: usize = 4;

#[derive(Debug)]
pub(crate) struct Records {
    client: Client,
    /// An agent's token may not read the ledger: asked once, not for every line.
    ledger_closed: Cell<bool>,
}

impl Records {
    pub(crate) fn of(client: Client) -> Self {
        Self {
            client,
            ledger_closed: Cell::new(false),
        }
    }

    /// As many as were asked for: a page ends early when its records are large.
    pub(crate) fn list(&self, filter: &ExecFilter) -> Result<Page<Exec>> {
        let wanted = if filter.limit == 0 {
            USUAL
        } else {
            filter.limit
        };
        let mut page = self.page(filter, wanted, filter.cursor.as_deref())?;
        while page.items.len() < wanted
            && let Some(next) = page.next.take()
        {
            let more = self.page(filter, wanted - page.items.len(), Some(&next))?;
            page.items.extend(more.items);
            page.next = more.next;
        }
        Ok(page)
    }

    fn page(&self, filter: &ExecFilter, limit: usize, cursor: Option<&str>) -> Result<Page<Exec>> {
        let target = Target::new(EXECS)
            .optional("status", filter.status)
            .optional("task_id", filter.task_id.as_deref())
            .optional("conversation_id", filter.conversation_id.as_deref())
            .optional("project_id", filter.project_id.as_ref())
            .optional("id_prefix", filter.id_prefix.as_deref())
            .optional("limit", Some(limit.min(MOST)))
            .optional("cursor", cursor);
        self.client.get(target)
    }

    fn get(&self, name: &str) -> Result<Exec> {
        self.client.get(Target::new(EXECS).segment(name))
    }

    /// By its id, its caller's own, or enough of the beginning of its id.
    pub(crate) fn find(&self, name: &str) -> Result<Exec> {
        match self.get(name) {
            Err(error) if error.code == Code::NotFound => self.look_for(name),
            found => found,
        }
    }

    /// The API knows whole ids; people type the beginning that a listing showed them.
    fn look_for(&self, name: &str) -> Result<Exec> {
        let Some(beginning) = beginning(name) else {
            return Err(unknown(name).hint("an exec id is `e_` and hexadecimal digits"));
        };
        let filter = ExecFilter {
            id_prefix: Some(beginning),
            limit: ALIKE,
            ..ExecFilter::default()
        };
        let mut found = self.list(&filter)?.items;
        if found.len() > 1 {
            let ids: Vec<&str> = found.iter().map(|exec| exec.exec_id.as_str()).collect();
            let message = format!("more than one exec starts with `{name}`");
            return Err(Error::new(Code::InvalidArgument, Stage::Parse, message)
                .hint(format!("say more of it: {}", ids.join(", "))));
        }
        found.pop().ok_or_else(|| unknown(name))
    }

    /// One that was there before.
    pub(crate) fn again(&self, exec: &Exec) -> Result<Exec> {
        self.client.insistently(|| self.get(exec.exec_id.as_str()))
    }

    /// How long to wait before looking again: a server is asked less often than this process.
    pub(crate) fn pause(&self, usual: Duration) -> Duration {
        match self.client.is_remote() {
            true => usual * 4,
            false => usual,
        }
    }

    /// Its record as it is then.
    pub(crate) fn cancel(&self, exec: &Exec) -> Result<Exec> {
        self.client.cancel(&exec.exec_id)
    }

    /// When it arrived. Its record has a time only once it ended, and none if it never started.
    pub(crate) fn opened_at(&self, exec: &Exec) -> Result<Option<Timestamp>> {
        let known = exec.started_at.or(exec.ended_at);
        if exec.started_at.is_some() || self.ledger_closed.get() {
            return Ok(known);
        }
        let filter = EntryFilter {
            exec_id: Some(exec.exec_id.clone()),
            ..EntryFilter::default()
        };
        match self.query(&filter) {
            Ok(page) => Ok(page.items.into_iter().map(|entry| entry.at).min()),
            Err(error) if error.code == Code::Forbidden => {
                self.ledger_closed.set(true);
                Ok(known)
            }
            Err(error) => Err(error),
        }
    }

    /// What it printed, from the first byte on. Read to its end, it may go on later.
    pub(crate) fn output(&self, exec: &Exec, stream: Stream) -> Result<Option<Output<'_>>> {
        Output::open(&self.client, exec, stream)
    }

    /// What it did to get out, from a place in the log on, and the place after that.
    pub(crate) fn network(&self, exec: &Exec, from: u64) -> Result<(Vec<Attempt>, u64)> {
        let target = of_exec(exec).segment("network").query("after", from);
        let page: NetworkPage = self.client.get(target)?;
        Ok((page.attempts, page.next))
    }

    /// What it did, from a place in the log on, and the place after that.
    pub(crate) fn effects(&self, exec: &Exec, from: u64) -> Result<(Vec<Effect>, u64)> {
        let target = of_exec(exec).segment("effects").query("after", from);
        let page: EffectPage = self.client.get(target)?;
        Ok((page.effects, page.next))
    }

    /// A file that it left, as it lies there now.
    pub(crate) fn artifact(&self, exec: &Exec, path: &RelPath, out: &mut dyn Write) -> Result<()> {
        let target = of_exec(exec).segment("artifacts").path(path.as_bytes());
        self.client.copy(target, out).map_err(|error| {
            let id = &exec.exec_id;
            match error.code {
                Code::NotFound => error.hint(format!("`glovebox artifact ls {id}` lists them")),
                _ => error,
            }
        })
    }
}

fn of_exec(exec: &Exec) -> Target {
    Target::new(EXECS).segment(exec.exec_id.as_str())
}

fn unknown(name: &str) -> Error {
    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    let message = format!("there is no exec `{shown}`");
    Error::new(Code::NotFound, Stage::Parse, message).hint("list them: `glovebox ps --all`")
}

/// The beginning of an id, as people write it.
pub(crate) fn beginning(name: &str) -> Option<String> {
    let digits = name.strip_prefix("e_").unwrap_or(name);
    let hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let fits = (1..=32).contains(&digits.len()) && digits.bytes().all(hexadecimal);
    fits.then(|| format!("e_{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_an_id_is_looked_for() {
        let whole = "0".repeat(32);
        for name in ["e_3f0c", "3f0c", &whole] {
            let digits = name.trim_start_matches("e_");
            assert_eq!(beginning(name), Some(format!("e_{digits}")), "{name}");
        }
        for name in ["", "e_", "my-name", "e_XYZ", &format!("e_{whole}0")] {
            assert_eq!(beginning(name), None, "{name}");
        }
    }
}
