//! The ledger: what was written, whether it is as it was written, and all of it.

use std::io::{self, BufReader, Seek, Write};

use glovebox_api::Target;
use glovebox_model::{Code, Error, Page, Result, SpaceId, Stage};
use glovebox_store::{
    Entry, EntryFilter, Expectations, ExportFormat, Timeline, TimelineFilter, Verification,
    verify_export,
};

use super::Records;

impl Records {
    /// The newest entries, the newest last.
    pub(crate) fn tail(&self, most: usize) -> Result<Vec<Entry>> {
        let filter = EntryFilter {
            limit: most,
            ..EntryFilter::default()
        };
        let mut entries = self.query(&filter)?.items;
        entries.reverse();
        Ok(entries)
    }

    pub(crate) fn query(&self, filter: &EntryFilter) -> Result<Page<Entry>> {
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
        self.client.get(target)
    }

    pub(crate) fn timeline(&self, filter: &TimelineFilter) -> Result<Timeline> {
        let target = Target::new("/v1/audit/timeline")
            .segment(&filter.task_id)
            .optional("limit", Some(filter.limit).filter(|limit| *limit > 0))
            .optional("cursor", filter.cursor.as_deref());
        match self.client.get(target) {
            Err(error) if error.code == Code::NotFound => Ok(Timeline {
                task_id: filter.task_id.clone(),
                steps: Vec::new(),
                next: None,
            }),
            found => found,
        }
    }

    /// A server looks at its rows and its key. What is known here it is not asked about: its
    /// export is compared with that here.
    pub(crate) fn verify(
        &self,
        space: Option<&SpaceId>,
        expectations: &Expectations,
    ) -> Result<Verification> {
        let target =
            Target::new("/v1/audit/verify").optional("space_id", space.map(SpaceId::as_str));
        let mut said: Verification = self.client.get_slowly(target)?;
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

    /// Writes the whole ledger, of all spaces that may be seen or of one, and returns the number of
    /// entries.
    pub(crate) fn export(
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
        self.client.copy(target, &mut counted)?;
        counted.out.flush().map_err(|error| {
            Error::new(Code::DiskFull, Stage::Close, "cannot write the export").caused_by(error)
        })?;
        Ok(counted.lines)
    }
}

/// As the API reads several tags.
fn several(tags: &[String]) -> Result<Option<String>> {
    match tags.iter().find(|tag| tag.contains(',')) {
        None if tags.is_empty() => Ok(None),
        None => Ok(Some(tags.join(","))),
        Some(_) => Err(Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            "only one tag can have a comma in it",
        )
        .hint("give that one first")),
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
