//! `glovebox audit verify`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use glovebox_model::{Code, Error, Result, SpaceId, Stage};
use glovebox_store::{
    Checkpoint, Expectations, Problem, Verification, parse_receipt, read_checkpoints, verify_export,
};
use serde::Serialize;

use crate::args::{Global, VerifyArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::count;
use crate::paint::{Paint, Tone};
use crate::records::Records;
use crate::render::one_line;
use crate::stdout;

/// As many as a person reads; `--json` has all.
const SHOWN_MOST: usize = 20;

#[derive(Debug, Serialize)]
struct Answer<'v> {
    sound: bool,
    #[serde(flatten)]
    verification: &'v Verification,
}

pub(crate) fn run(global: &Global, args: VerifyArgs) -> Result<Exit> {
    let expectations = expectations(&args)?;
    let verification = match &args.export {
        Some(file) => verify_export(reader(file)?, &expectations)?,
        None => verify_here(global, args.space.as_ref(), &expectations)?,
    };
    let sound = verification.is_sound();
    if global.json {
        stdout::json(&Answer {
            sound,
            verification: &verification,
        })?;
    } else if !global.quiet || !sound {
        stdout::text(&text(&verification, Paint::on(&std::io::stdout())))?;
        if let (Some(key), None) = (&verification.signed_by, &expectations.public_key) {
            stdout::text(&format!(
                "signed by the key {}, which was compared with none: name yours with `--public-key`\n",
                one_line(key)
            ))?;
        }
    }
    Ok(if sound { Exit::SUCCESS } else { Exit::FAILURE })
}

fn expectations(args: &VerifyArgs) -> Result<Expectations> {
    let mut known = Expectations {
        checkpoints: match &args.checkpoint {
            Some(file) => checkpoints(file)?,
            None => Vec::new(),
        },
        public_key: args.public_key.clone(),
        ..Expectations::default()
    };
    for text in &args.receipt {
        match parse_receipt(text)? {
            (None, receipt) => known.receipts.push(receipt),
            (Some(space), receipt) => known.of_spaces.push((space, receipt)),
        }
    }
    Ok(known)
}

fn verify_here(
    global: &Global,
    space: Option<&SpaceId>,
    expectations: &Expectations,
) -> Result<Verification> {
    let context = Context::new(global);
    if let Some(server) = context.server()? {
        return existing(space, Records::of(server).verify(space, expectations)?);
    }
    // From the store itself: the API is not told what to expect, and a ledger that was changed may
    // not open for it.
    match context.place()?.open_if_there() {
        Ok(Some((_, store))) => existing(
            space,
            match space {
                Some(space) => store.verify(space, expectations)?,
                None => store.verify_all(expectations)?,
            },
        ),
        Ok(None) => Ok(missing(&context.state_path()?, expectations)),
        // What cannot be opened since somebody changed it is a finding, and not a failure to look.
        Err(error) if error.code == Code::LedgerTampered => {
            Ok(Verification::of_nothing(error.message))
        }
        Err(error) => {
            let emptied = missing_database(&context.state_path()?);
            let found = missing(&context.state_path()?, expectations);
            match emptied && !found.is_sound() {
                true => Ok(found),
                false => Err(error),
            }
        }
    }
}

/// A space without any entry never began; the operator's may be empty.
fn existing(space: Option<&SpaceId>, found: Verification) -> Result<Verification> {
    let space = match space {
        Some(space) if found.entries == 0 && found.is_sound() => space,
        _ => return Ok(found),
    };
    if *space == SpaceId::local() {
        return Ok(found);
    }
    Err(Error::new(
        Code::NotFound,
        Stage::Parse,
        format!("there is no space `{space}`"),
    )
    .hint("all of them: `glovebox audit verify --json` has their names"))
}

/// Whether nothing is left of the database, or an empty file.
fn missing_database(state: &Path) -> bool {
    let database = std::fs::metadata(state.join("glovebox.db"));
    database.map_or(true, |it| it.len() == 0)
}

/// Without a database. Nothing was ever written, unless something outside of it says otherwise.
fn missing(state: &Path, expectations: &Expectations) -> Verification {
    let mut problems = Vec::new();
    let mut problem = |seq, what: &str| {
        problems.push(Problem {
            space_id: None,
            seq,
            what: what.to_owned(),
        });
    };
    if state.join("ledger.key").exists() {
        problem(None, "the ledger's key is there and its database is gone");
    }
    let named = expectations.of_spaces.iter().map(|(_, receipt)| receipt);
    for receipt in expectations.receipts.iter().chain(named) {
        problem(
            Some(receipt.seq),
            "a receipt names this entry, and there is no ledger",
        );
    }
    for checkpoint in expectations.checkpoints.iter().filter(|it| it.seq > 0) {
        let seq = Some(checkpoint.seq);
        problem(
            seq,
            "the outside checkpoint names this entry, and there is no ledger",
        );
    }
    Verification {
        all_spaces: true,
        entries: 0,
        head: None,
        spaces: Vec::new(),
        problems,
        signed_by: None,
    }
}

fn text(verification: &Verification, paint: Paint) -> String {
    let mut entries = count(verification.entries, "entry", "entries");
    match verification.spaces.as_slice() {
        [one] if !verification.all_spaces => {
            let _ = write!(entries, " of the space `{}` alone", one_line(&one.space_id));
        }
        [] | [_] => {}
        several => {
            let spaces = count(several.len() as u64, "space", "spaces");
            let _ = write!(entries, " in {spaces}");
        }
    }
    let problems = &verification.problems;
    if problems.is_empty() {
        let good = paint.apply(Tone::Good, "sound");
        return match &verification.head {
            Some(head) => format!(
                "{good}: {entries}, the last is {}:{}\n",
                head.seq, head.hash
            ),
            None => format!("{good}: the ledger is empty\n"),
        };
    }
    let bad = paint.apply(Tone::Error, "tampered");
    let found = count(problems.len() as u64, "problem", "problems");
    let mut text = format!("{bad}: {found} in a ledger of {entries}\n");
    for Problem {
        space_id,
        seq,
        what,
    } in problems.iter().take(SHOWN_MOST)
    {
        let mut place = seq.map_or("the ledger".to_owned(), |seq| format!("entry {seq}"));
        if let Some(space) = space_id
            && space != SpaceId::local().as_str()
        {
            let _ = write!(place, " of `{}`", one_line(space));
        }
        let _ = writeln!(text, "  {place}: {}", one_line(what));
    }
    if problems.len() > SHOWN_MOST {
        let more = problems.len() - SHOWN_MOST;
        let _ = writeln!(text, "  and {more} more: `--json` has all");
    }
    text
}

fn unreadable(what: &str, file: &Path) -> Error {
    let shown = file.display();
    Error::new(
        Code::InvalidArgument,
        Stage::Parse,
        format!("cannot read the {what} `{shown}`"),
    )
}

fn reader(file: &Path) -> Result<Box<dyn BufRead>> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let opened = File::open(file).map_err(|error| unreadable("export", file).caused_by(error))?;
    Ok(Box::new(BufReader::new(opened)))
}

/// Those of every space that the file has: a checkpoint by itself, or an export.
fn checkpoints(file: &Path) -> Result<Vec<Checkpoint>> {
    let failed = |error: std::io::Error| unreadable("checkpoint", file).caused_by(error);
    let opened = File::open(file).map_err(failed)?;
    read_checkpoints(BufReader::new(opened)).map_err(|mut error| {
        error.message = format!("`{}` does not end with a checkpoint", file.display());
        error
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::ReceiptRef;
    use glovebox_store::SpaceLedger;

    fn receipt(seq: u64) -> ReceiptRef {
        ReceiptRef {
            seq,
            hash: "cd".repeat(32),
        }
    }

    fn verified(entries: u64, spaces: &[&str]) -> Verification {
        let head = (entries > 0).then(|| receipt(entries));
        let space = |space: &&str| SpaceLedger {
            space_id: (*space).to_owned(),
            entries,
            head: head.clone(),
        };
        Verification {
            all_spaces: spaces != ["a"],
            entries,
            spaces: spaces.iter().map(space).collect(),
            head: head.clone(),
            problems: Vec::new(),
            signed_by: None,
        }
    }

    #[test]
    fn a_sound_ledger_is_one_line_with_its_receipt() {
        let hash = "cd".repeat(32);
        for (entries, spaces, said) in [
            (1, &["local"][..], "1 entry, the last is 1:HASH"),
            (0, &["local"], "the ledger is empty"),
            (
                2,
                &["a"],
                "2 entries of the space `a` alone, the last is 2:HASH",
            ),
            (
                2,
                &["local", "a"],
                "2 entries in 2 spaces, the last is 2:HASH",
            ),
        ] {
            let expected = format!("sound: {}\n", said.replace("HASH", &hash));
            assert_eq!(text(&verified(entries, spaces), Paint::Plain), expected);
        }
    }

    #[test]
    fn each_problem_says_where_and_many_are_counted() {
        let problem = |space: &str, seq, what: &str| Problem {
            space_id: Some(space.to_owned()),
            seq,
            what: what.to_owned(),
        };
        let mut verification = verified(3, &["local"]);
        verification.problems = vec![
            problem("local", Some(2), "entry was edited\x1b[2J"),
            problem("local", None, "cut"),
            problem("a", Some(1), "cut"),
        ];
        assert_eq!(
            text(&verification, Paint::Plain),
            "tampered: 3 problems in a ledger of 3 entries\n  \
             entry 2: entry was edited\\u{1b}[2J\n  the ledger: cut\n  entry 1 of `a`: cut\n"
        );
        verification.problems = vec![verification.problems[1].clone(); 25];
        let shown = text(&verification, Paint::Plain);
        assert_eq!(shown.lines().count(), 22);
        assert!(shown.ends_with("and 5 more: `--json` has all\n"), "{shown}");
    }

    #[test]
    fn a_ledger_that_should_be_there_is_missed() {
        let place = tempfile::tempdir().unwrap();
        let nothing = Expectations::default();
        assert!(missing(place.path(), &nothing).is_sound());
        let known = Expectations {
            receipts: vec![receipt(5)],
            ..Expectations::default()
        };
        assert_eq!(missing(place.path(), &known).problems[0].seq, Some(5));
        std::fs::write(place.path().join("ledger.key"), "").unwrap();
        assert!(!missing(place.path(), &nothing).is_sound());
    }
}
