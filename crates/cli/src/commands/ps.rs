//! `glovebox ps`.

use std::collections::HashSet;

use glovebox_model::{Exec, Page, Result, Status};
use glovebox_store::ExecFilter;
use jiff::Timestamp;

use crate::args::{Global, PsArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::{age, clip, command_line, duration};
use crate::paint::{Paint, Tone};
use crate::records::Records;
use crate::render::{self, one_line};
use crate::stdout;
use crate::table::{Cell, Table};

/// So that a row fits into 80 columns most of the time.
const COMMAND_MOST: usize = 32;
/// Digits of an id that tell execs apart, unless two of a listing share them.
const DIGITS_LEAST: usize = 12;
const ID_PREFIX: usize = "e_".len();

/// An exec, and when it arrived.
struct Listed {
    exec: Exec,
    opened_at: Option<Timestamp>,
}

pub(crate) fn run(global: &Global, args: PsArgs) -> Result<Exit> {
    let records = Context::new(global).records()?;
    let status = match (args.status, args.all) {
        (Some(status), _) => Some(status),
        (None, true) => None,
        (None, false) => Some(Status::Running),
    };
    let filter = ExecFilter {
        status,
        task_id: args.task,
        limit: usize::from(args.limit),
        cursor: args.cursor,
        ..ExecFilter::default()
    };
    let mut page = match &records {
        Some(records) => records.list(&filter)?,
        None => Page {
            items: Vec::new(),
            next: None,
        },
    };
    // Those that wait belong to what is going on, before the first of those that run.
    if let (Some(records), None, false, None) = (&records, args.status, args.all, &filter.cursor) {
        for status in [Status::Queued, Status::AwaitingApproval] {
            let waiting = ExecFilter {
                status: Some(status),
                ..filter.clone()
            };
            page.items.splice(0..0, records.list(&waiting)?.items);
        }
    }
    if global.json {
        stdout::json(&page)?;
    } else if global.quiet {
        let ids: String = page
            .items
            .iter()
            .map(|it| format!("{}\n", it.exec_id))
            .collect();
        stdout::text(&ids)?;
    } else if let Some(records) = records.filter(|_| !page.items.is_empty()) {
        list(&records, page)?;
    } else {
        render::note(nothing(status));
    }
    Ok(Exit::SUCCESS)
}

fn nothing(status: Option<Status>) -> &'static str {
    match status {
        None => "nothing is on record; `glovebox run -- CMD` starts something",
        Some(Status::Running) => "nothing is running; `glovebox ps --all` lists what ran",
        Some(_) => "no exec stands so; `glovebox ps --all` lists what ran",
    }
}

fn list(records: &Records, page: Page<Exec>) -> Result<()> {
    let next = page.next;
    let listed: Vec<Listed> = page
        .items
        .into_iter()
        .map(|exec| {
            let opened_at = records.opened_at(&exec)?;
            Ok(Listed { exec, opened_at })
        })
        .collect::<Result<_>>()?;
    stdout::text(&table(&listed, Timestamp::now()).text(Paint::on(&std::io::stdout())))?;
    for Listed { exec, .. } in listed.iter().filter(|it| it.exec.abandoned) {
        render::note(&abandoned(exec));
    }
    if let Some(cursor) = next {
        render::note(&format!("there are more: `--cursor {cursor}`"));
    }
    Ok(())
}

/// For an exec that looks alive and is not.
pub(super) fn abandoned(exec: &Exec) -> String {
    let id = &exec.exec_id;
    format!("the process that ran `{id}` is gone; the next run records it as lost")
}

fn table(listed: &[Listed], now: Timestamp) -> Table<6> {
    let digits = distinct_digits(listed.iter().map(|it| it.exec.exec_id.as_str()));
    let mut table = Table::new(["ID", "STATUS", "COMMAND", "EXIT", "DURATION", "AGE"]);
    for Listed { exec, opened_at } in listed {
        let command = one_line(&command_line(&exec.cmd, &exec.args));
        table.push([
            Cell::from(&exec.exec_id.as_str()[..ID_PREFIX + digits]),
            Cell::toned(tone(exec.status), &standing(exec)),
            Cell::from(clip(&command, COMMAND_MOST)),
            Cell::from(ending(exec)),
            Cell::from(lasted(exec, *opened_at, now)),
            Cell::from(opened_at.map_or("-".to_owned(), |at| age(at, now))),
        ]);
    }
    table
}

fn standing(exec: &Exec) -> String {
    match exec.queue_position {
        Some(0) => format!("{} (next)", exec.status),
        Some(before) => format!("{} ({before} before)", exec.status),
        None => exec.status.to_string(),
    }
}

/// How many digits of these ids tell them all apart.
fn distinct_digits<'e>(ids: impl Iterator<Item = &'e str> + Clone) -> usize {
    let longest = ids
        .clone()
        .map(|id| id.len() - ID_PREFIX)
        .max()
        .unwrap_or(0);
    let told_apart = |digits: &usize| {
        let mut seen = HashSet::new();
        ids.clone().all(|id| seen.insert(&id[..ID_PREFIX + digits]))
    };
    (DIGITS_LEAST..longest).find(told_apart).unwrap_or(longest)
}

pub(super) const fn tone(status: Status) -> Tone {
    match status {
        Status::Succeeded => Tone::Good,
        Status::Queued | Status::AwaitingApproval | Status::Running | Status::Held => Tone::Caution,
        Status::Failed
        | Status::TimedOut
        | Status::Killed
        | Status::Canceled
        | Status::PolicyDenied
        | Status::Lost
        | Status::Error => Tone::Bad,
    }
}

fn ending(exec: &Exec) -> String {
    match (exec.exit_code, exec.signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "-".to_owned(),
    }
}

fn lasted(exec: &Exec, opened_at: Option<Timestamp>, now: Timestamp) -> String {
    let so_far = || {
        let opened_at = opened_at.filter(|_| exec.status == Status::Running)?;
        u64::try_from(now.as_millisecond() - opened_at.as_millisecond()).ok()
    };
    match exec.duration_ms.or_else(so_far) {
        Some(milliseconds) => duration(milliseconds),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sample;

    fn listed(exec: Exec, second: i64) -> Listed {
        Listed {
            exec,
            opened_at: Some(Timestamp::from_second(second).unwrap()),
        }
    }

    #[test]
    fn a_row_says_what_ran_and_how_it_ended() {
        let ended = sample::exec(1);
        let mut running = sample::exec(2);
        running.status = Status::Running;
        running.exit_code = None;
        running.duration_ms = None;
        let mut killed = sample::exec(3);
        killed.status = Status::Killed;
        killed.exit_code = None;
        killed.signal = Some(9);
        killed.cmd = glovebox_model::ByteString::try_from("ev\x1bil").unwrap();
        let rows = [
            listed(running, 940),
            listed(ended, 400),
            listed(killed, -5000),
        ];
        let now = Timestamp::from_second(1000).unwrap();
        assert_eq!(
            table(&rows, now).text(Paint::Plain),
            "\
ID              STATUS   COMMAND                           EXIT      DURATION  AGE
e_020202020202  running  sh -c 'echo a long line; exit 3'  -         1m        1m
e_010101010101  failed   sh -c 'echo a long line; exit 3'  3         1.5s      10m
e_030303030303  killed   'ev\\u{1b}il' -c 'echo a long li…  signal 9  1.5s      1h
"
        );
    }

    #[test]
    fn one_that_waits_shows_its_place() {
        let mut waiting = sample::exec(1);
        waiting.status = Status::Queued;
        assert_eq!(standing(&waiting), "queued");
        waiting.queue_position = Some(0);
        assert_eq!(standing(&waiting), "queued (next)");
        waiting.queue_position = Some(3);
        assert_eq!(standing(&waiting), "queued (3 before)");
    }

    #[test]
    fn ids_are_as_short_as_they_can_be() {
        let ids = [
            "e_aaaaaaaaaaaaaaaa",
            "e_aaaaaaaaaaaabbbb",
            "e_cccccccccccccccc",
        ];
        assert_eq!(distinct_digits(ids[1..].iter().copied()), 12);
        assert_eq!(distinct_digits(ids.iter().copied()), 13);
        assert_eq!(distinct_digits(std::iter::empty()), 0);
    }
}
