//! The records of a server, as its API gives them.

use std::cell::Cell;
use std::io::{self, BufReader, Read, Seek, Write};

use glovebox_api::{EffectPage, NetworkPage, Target};
use glovebox_model::{Attempt, Code, Effect, Error, Exec, Page, Result, SpaceId, Stage, Stream};
use glovebox_store::{
    Entry, EntryFilter, ExecFilter, Expectations, ExportFormat, Timeline, TimelineFilter,
    Verification, verify_export,
};
use glovebox_workspace::RelPath;
use jiff::Timestamp;

use glovebox_api::client::Client;

/// Of one stream at once.
const PIECE: usize = 1 << 20;
/// A shortened id is looked for among so many of the newest.
/// How many a listing has when nobody says.
const USUAL: usize = 50;
/// What the API gives at most in one page.
const MOST: usize = 1000;
const LOOK_PAGES: usize = 10;
const LOOK_PAGE: usize = 100;

#[derive(Debug)]
pub(crate) struct There {
    remote: Client,
    /// An agent's token may not read the ledger: asked once, not for every line.
    ledger_closed: Cell<bool>,
}

impl There {
    pub(super) fn new(remote: Client) -> Self {
        Self {
            remote,
            ledger_closed: Cell::new(false),
        }
    }

    /// As many as were asked for: the server ends a page early when its records are large.
    pub(super) fn list(&self, filter: &ExecFilter) -> Result<Page<Exec>> {
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
        let target = Target::new("/v1/execs")
            .optional("status", filter.status)
            .optional("task_id", filter.task_id.as_deref())
            .optional("conversation_id", filter.conversation_id.as_deref())
            .optional("project_id", filter.project_id.as_ref())
            .optional("limit", Some(limit.min(MOST)))
            .optional("cursor", cursor);
        self.remote.get(target)
    }

    pub(super) fn get(&self, name: &str) -> Result<Exec> {
        self.remote.get(Target::new("/v1/execs").segment(name))
    }

    pub(super) fn network(&self, exec: &Exec, from: u64) -> Result<(Vec<Attempt>, u64)> {
        let target = Target::new("/v1/execs").segment(exec.exec_id.as_str());
        let target = target.segment("network").query("after", from);
        let page: NetworkPage = self.remote.get(target)?;
        Ok((page.attempts, page.next))
    }

    pub(super) fn effects(&self, exec: &Exec, from: u64) -> Result<(Vec<Effect>, u64)> {
        let target = Target::new("/v1/execs").segment(exec.exec_id.as_str());
        let target = target.segment("effects").query("after", from);
        let page: EffectPage = self.remote.get(target)?;
        Ok((page.effects, page.next))
    }

    /// One that was there before.
    pub(super) fn again(&self, exec: &Exec) -> Result<Exec> {
        self.remote.insistently(|| self.get(exec.exec_id.as_str()))
    }

    pub(super) fn find(&self, name: &str) -> Result<Exec> {
        match self.get(name) {
            Err(error) if error.code == Code::NotFound => match beginning(name) {
                Some(beginning) => self.look_for(&beginning, error),
                None => Err(error),
            },
            found => found,
        }
    }

    /// Its record as it is then.
    pub(crate) fn cancel(&self, exec: &Exec) -> Result<Exec> {
        self.remote.cancel(&exec.exec_id)
    }

    /// The API knows whole ids only; people type the beginning that a listing showed them.
    fn look_for(&self, beginning: &str, unknown: Error) -> Result<Exec> {
        let mut filter = ExecFilter {
            limit: LOOK_PAGE,
            ..ExecFilter::default()
        };
        let mut found: Vec<Exec> = Vec::new();
        for _ in 0..LOOK_PAGES {
            let page = self.list(&filter)?;
            let fits = |exec: &Exec| exec.exec_id.as_str().starts_with(beginning);
            found.extend(page.items.into_iter().filter(fits));
            filter.cursor = page.next;
            if filter.cursor.is_none() {
                break;
            }
        }
        if found.len() > 1 {
            let ids: Vec<&str> = found
                .iter()
                .take(4)
                .map(|exec| exec.exec_id.as_str())
                .collect();
            return Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                format!("more than one exec starts with `{beginning}`"),
            )
            .hint(format!("say more of it: {}", ids.join(", "))));
        }
        found.pop().ok_or_else(|| {
            let newest = LOOK_PAGES * LOOK_PAGE;
            unknown.hint(format!(
                "a shortened id is looked for among the newest {newest}"
            ))
        })
    }

    pub(super) fn artifact(&self, exec: &Exec, path: &RelPath, out: &mut dyn Write) -> Result<()> {
        let target = Target::new("/v1/execs")
            .segment(exec.exec_id.as_str())
            .segment("artifacts")
            .path(path.as_bytes());
        self.remote.copy(target, out)
    }

    pub(super) fn opened_at(&self, exec: &Exec) -> Result<Option<Timestamp>> {
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

    pub(super) fn output<'r>(
        &'r self,
        exec: &Exec,
        stream: Stream,
    ) -> Result<Option<Box<dyn Read + 'r>>> {
        let mut output = Output {
            remote: &self.remote,
            base: Target::new("/v1/execs")
                .segment(exec.exec_id.as_str())
                .segment(match stream {
                    Stream::Stdout => "stdout",
                    Stream::Stderr => "stderr",
                }),
            offset: 0,
            held: Vec::new(),
        };
        match output.fetch() {
            Ok(()) => Ok(Some(Box::new(output))),
            Err(error) if error.code == Code::NotFound => match is_elsewhere(exec, stream) {
                true => Err(elsewhere(exec)),
                false => Ok(None),
            },
            Err(error) => Err(error),
        }
    }

    pub(super) fn tail(&self, most: usize) -> Result<Vec<Entry>> {
        let filter = EntryFilter {
            limit: most,
            ..EntryFilter::default()
        };
        let mut entries = self.query(&filter)?.items;
        entries.reverse();
        Ok(entries)
    }

    pub(super) fn query(&self, filter: &EntryFilter) -> Result<Page<Entry>> {
        // The first by itself: one tag may hold a comma.
        let (tag, more) = match filter.tags.split_first() {
            Some((tag, more)) => (Some(tag), more),
            None => (None, &[][..]),
        };
        let target = Target::new("/v1/audit")
            .optional("exec_id", filter.exec_id.as_ref())
            .optional("kind", filter.kind)
            .optional("since", filter.since)
            .optional("until", filter.until)
            .optional("task_id", filter.task_id.as_deref())
            .optional("workflow_id", filter.workflow_id.as_deref())
            .optional("agent_id", filter.agent_id.as_deref())
            .optional("limit", Some(filter.limit).filter(|limit| *limit > 0))
            .optional("tag", tag)
            .optional("tags", several(more)?)
            .optional("without", several(&filter.without)?)
            .optional("cursor", filter.cursor.as_deref());
        self.remote.get(target)
    }

    pub(super) fn timeline(&self, filter: &TimelineFilter) -> Result<Timeline> {
        let target = Target::new("/v1/audit/timeline")
            .segment(&filter.task_id)
            .optional("limit", Some(filter.limit).filter(|limit| *limit > 0))
            .optional("cursor", filter.cursor.as_deref());
        match self.remote.get(target) {
            Err(error) if error.code == Code::NotFound => Ok(Timeline {
                task_id: filter.task_id.clone(),
                steps: Vec::new(),
                next: None,
            }),
            found => found,
        }
    }

    /// The server looks at its rows and its key. What is known here it is not asked about: its
    /// export is compared with that here.
    pub(super) fn verify(
        &self,
        space: Option<&SpaceId>,
        expectations: &Expectations,
    ) -> Result<Verification> {
        let target =
            Target::new("/v1/audit/verify").optional("space_id", space.map(SpaceId::as_str));
        let mut said: Verification = self.remote.get_slowly(target)?;
        let Expectations {
            receipts,
            of_spaces,
            checkpoints,
            public_key,
            abandoned: _,
        } = expectations;
        let knows_receipts = !receipts.is_empty() || !of_spaces.is_empty();
        if !knows_receipts && checkpoints.is_empty() && public_key.is_none() {
            return Ok(said);
        }
        let unkept = |error: io::Error| {
            Error::new(
                Code::DiskFull,
                Stage::Collect,
                "cannot keep the export to compare it",
            )
            .caused_by(error)
            .hint("set `TMPDIR` to a directory with room")
        };
        let mut file = tempfile::tempfile().map_err(unkept)?;
        self.export(space, ExportFormat::Jsonl, &mut file)?;
        file.rewind().map_err(unkept)?;
        let seen = verify_export(BufReader::new(file), expectations)?;
        said.problems.extend(seen.problems);
        Ok(said)
    }

    pub(super) fn export(
        &self,
        space: Option<&SpaceId>,
        format: ExportFormat,
        out: &mut dyn Write,
    ) -> Result<u64> {
        let (name, counted) = match format {
            // There are headers, rows and checkpoints beside them.
            ExportFormat::Jsonl => ("jsonl", &b"{\"type\":\"entry\""[..]),
            ExportFormat::Ocsf => ("ocsf", &b"{"[..]),
        };
        let mut counted = Counted::new(out, counted);
        let target = Target::new("/v1/audit/export")
            .query("format", name)
            .optional("space_id", space.map(SpaceId::as_str));
        self.remote.copy(target, &mut counted)?;
        counted.out.flush().map_err(|error| {
            Error::new(Code::DiskFull, Stage::Close, "cannot write the export").caused_by(error)
        })?;
        Ok(counted.lines)
    }
}

/// As the server reads several tags.
fn several(tags: &[String]) -> Result<Option<String>> {
    match tags.iter().find(|tag| tag.contains(',')) {
        None if tags.is_empty() => Ok(None),
        None => Ok(Some(tags.join(","))),
        Some(_) => Err(Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            "a server takes only one tag with a comma in it",
        )
        .hint("give that one first")),
    }
}

/// The beginning of an id, as people write it.
fn beginning(name: &str) -> Option<String> {
    let digits = name.strip_prefix("e_").unwrap_or(name);
    let hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let fits = (1..32).contains(&digits.len()) && digits.bytes().all(hexadecimal);
    fits.then(|| format!("e_{digits}"))
}

/// Servers of one database share their records; files lie in the state directory of the server
/// that ran the exec.
fn is_elsewhere(exec: &Exec, stream: Stream) -> bool {
    let written = match stream {
        Stream::Stdout => exec.stdout_bytes,
        Stream::Stderr => exec.stderr_bytes,
    };
    exec.status.is_final() && written > 0
}

fn elsewhere(exec: &Exec) -> Error {
    let id = &exec.exec_id;
    Error::new(
        Code::NotFound,
        Stage::Collect,
        format!("the output of `{id}` does not lie with this server"),
    )
    .of_exec(id.clone())
    .hint("ask the server that ran it: each keeps the output of its own execs")
    .hint("servers on one `--state-dir` share it")
}

/// A stream that is read in pieces; at its end a later read may find more.
struct Output<'r> {
    remote: &'r Client,
    base: Target,
    /// What the next piece begins with.
    offset: u64,
    held: Vec<u8>,
}

impl Output<'_> {
    fn fetch(&mut self) -> Result<()> {
        let target = self
            .base
            .clone()
            .query("offset", self.offset)
            .query("limit", PIECE);
        let piece = self
            .remote
            .insistently(|| self.remote.bytes(target.clone()))?;
        self.offset += piece.len() as u64;
        self.held = piece.into();
        Ok(())
    }
}

impl Read for Output<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.held.is_empty() {
            self.fetch().map_err(io::Error::other)?;
        }
        let count = self.held.len().min(into.len());
        into[..count].copy_from_slice(&self.held[..count]);
        self.held.drain(..count);
        Ok(count)
    }
}

/// Counts the lines that begin so.
struct Counted<'w> {
    out: &'w mut dyn Write,
    beginning: &'static [u8],
    /// Of the line under way, so many bytes are as they should be; nothing once one is not.
    matched: Option<usize>,
    lines: u64,
}

impl<'w> Counted<'w> {
    fn new(out: &'w mut dyn Write, beginning: &'static [u8]) -> Self {
        Self {
            out,
            beginning,
            matched: Some(0),
            lines: 0,
        }
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        for byte in &bytes[..written] {
            if *byte == b'\n' {
                self.lines += u64::from(self.matched == Some(self.beginning.len()));
                self.matched = Some(0);
            } else if let Some(matched) = self.matched.filter(|it| *it < self.beginning.len()) {
                self.matched = (self.beginning[matched] == *byte).then_some(matched + 1);
            }
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_an_id_is_looked_for() {
        assert_eq!(beginning("e_3f0c").as_deref(), Some("e_3f0c"));
        assert_eq!(beginning("3f0c").as_deref(), Some("e_3f0c"));
        for name in [
            "",
            "e_",
            "my-name",
            "e_XYZ",
            &format!("e_{}", "0".repeat(32)),
        ] {
            assert_eq!(beginning(name), None, "{name}");
        }
    }

    #[test]
    fn lines_are_counted_however_they_are_cut() {
        let mut out = Vec::new();
        let mut counted = Counted::new(&mut out, b"ab");
        for piece in [&b"abc\na"[..], b"b\nb", b"\nab\na\n"] {
            counted.write_all(piece).unwrap();
        }
        assert_eq!(counted.lines, 3);
        assert_eq!(out, b"abc\nab\nb\nab\na\n");
    }
}
