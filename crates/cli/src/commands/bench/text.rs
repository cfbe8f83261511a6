//! The result as a person reads it.

use std::fmt::Write as _;

use glovebox_bench::{Absent, Listing, Outcome, Payload, Report, Row};
use glovebox_model::ByteString;

use crate::human::command_line;
use crate::paint::{Paint, Tone};
use crate::render::one_line;
use crate::table::{Cell, Table};

pub(super) fn report(report: &Report, paint: Paint) -> String {
    let mut text = host(report);
    for payload in Payload::ALL {
        let mut rows = report
            .rows
            .iter()
            .filter(|row| row.payload == payload)
            .peekable();
        if rows.peek().is_some() {
            let heading = payload.argv().join(" ");
            let _ = writeln!(text, "{}", paint.apply(Tone::Heading, &heading));
            text.push_str(&times(rows).text(paint));
            text.push('\n');
        }
    }
    let mut sections = vec![comparisons(report).text(paint), memory(report).text(paint)];
    if !report.equivalents.is_empty() {
        let mut table = Table::new(["BWRAP", "WHAT OF OUR PLAN DOES THE SAME"]);
        for equivalent in &report.equivalents {
            table.push([equivalent.bwrap.into(), equivalent.ours.into()]);
        }
        sections.push(table.text(paint));
    }
    sections.push(commands(&report.rows));
    text.push_str(&sections.join("\n"));
    text.push_str(&absent(&report.absent));
    text
}

/// The contenders that would be measured.
pub(super) fn listing(listing: &Listing, paint: Paint) -> String {
    let mut table = Table::new(["NAME", "PROGRAM", "WHAT"]);
    for contender in &listing.contenders {
        let program = contender.payload.argv().join(" ");
        table.push([contender.name.into(), program.into(), contender.what.into()]);
    }
    table.text(paint) + &absent(&listing.absent)
}

fn host(report: &Report) -> String {
    let host = &report.host;
    format!(
        "glovebox {} ({} build) as {}; Linux {} {}; {} x {}; {} MiB; control groups: {}\n\n",
        host.version,
        host.build,
        host.user,
        host.kernel,
        host.machine,
        host.processors,
        host.processor,
        host.memory_bytes >> 20,
        host.cgroups,
    )
}

fn times<'row>(rows: impl Iterator<Item = &'row Row>) -> Table<7> {
    let mut table = Table::new(["NAME", "MIN", "P50", "P99", "x VFORK", "N", "WHAT"]);
    for row in rows {
        let nothing = || Cell::from("-");
        table.push(match &row.outcome {
            Outcome::Samples(it) => [
                row.name.into(),
                time(it.min_us).into(),
                time(it.p50_us).into(),
                time(it.p99_us).into(),
                row.of_baseline
                    .map_or_else(nothing, |it| format!("{it:.2}").into()),
                it.count.to_string().into(),
                row.what.into(),
            ],
            Outcome::Failure(why) => [
                row.name.into(),
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                Cell::toned(Tone::Bad, why),
            ],
        });
    }
    table
}

fn comparisons(report: &Report) -> Table<6> {
    let mut table = Table::new(["RATIO", "PROGRAM", "OF P50", "OF MIN", "AIM", ""]);
    for comparison in &report.comparisons {
        let aim = comparison.aim.map(|aim| aim.to_string());
        table.push([
            (&comparison.what).into(),
            comparison.payload.name().into(),
            format!("{:.2}", comparison.ratio).into(),
            format!("{:.2}", comparison.ratio_of_min).into(),
            aim.as_deref().unwrap_or("-").into(),
            verdict(comparison.is_met),
        ]);
    }
    table
}

/// For the reader alone: a host under load cannot decide what is fast enough.
fn verdict(is_met: Option<bool>) -> Cell {
    match is_met {
        Some(true) => Cell::toned(Tone::Good, "met"),
        Some(false) => Cell::toned(Tone::Caution, "missed"),
        None => "".into(),
    }
}

fn memory(report: &Report) -> Table<7> {
    let header = [
        "WHILE IT WAITS",
        "PROCESS",
        "RSS",
        "PSS",
        "PRIVATE",
        "AIM",
        "",
    ];
    let mut table = Table::new(header);
    let kilobytes = |bytes: u64| format!("{} kB", bytes / 1024);
    let nothing = || Cell::from("-");
    for memory in &report.memory {
        for it in &memory.processes {
            table.push([
                memory.name.into(),
                (&it.process).into(),
                kilobytes(it.rss_bytes).into(),
                kilobytes(it.pss_bytes).into(),
                kilobytes(it.private_bytes).into(),
                "".into(),
                "".into(),
            ]);
        }
        let what = match &memory.failure {
            Some(why) => Cell::toned(Tone::Bad, why),
            None => "all".into(),
        };
        let private = match &memory.failure {
            Some(_) => nothing(),
            None => kilobytes(memory.private_bytes).into(),
        };
        let aim = memory
            .aim_bytes
            .map(|bytes| format!("<= {}", kilobytes(bytes)));
        table.push([
            memory.name.into(),
            what,
            nothing(),
            nothing(),
            private,
            aim.as_deref().unwrap_or("-").into(),
            verdict(memory.is_met()),
        ]);
    }
    table
}

/// One line each, to be copied; `FD` stands for a descriptor of the filter's file.
fn commands(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| row.payload == Payload::True) {
        let words: Vec<ByteString> = row
            .argv
            .iter()
            .filter_map(|word| ByteString::try_from(word.as_str()).ok())
            .collect();
        if let [command, args @ ..] = &words[..] {
            let line = one_line(&command_line(command, args));
            let _ = writeln!(text, "{}: {line}", row.name);
        }
    }
    text
}

fn absent(missing: &[Absent]) -> String {
    let mut text = String::new();
    for (index, peer) in missing.iter().enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        let (name, why, hint) = (peer.name, &peer.why, &peer.hint);
        let _ = writeln!(text, "{gap}not measured: {name}: {why}; {hint}");
    }
    text
}

fn time(micros: f64) -> String {
    if micros < 1000.0 {
        format!("{micros:.0} us")
    } else {
        format!("{:.2} ms", micros / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!(time(416.4), "416 us");
        assert_eq!(time(15_320.0), "15.32 ms");
    }

    #[test]
    fn a_missing_peer_comes_with_the_way_to_get_it() {
        let missing = Absent {
            name: "bwrap",
            why: "not found in `PATH`".into(),
            hint: "apt-get install bubblewrap".into(),
        };
        let nothing_else = Listing {
            contenders: Vec::new(),
            absent: vec![missing],
        };
        let text = listing(&nothing_else, Paint::Plain);
        assert!(text.ends_with("apt-get install bubblewrap\n"), "{text}");
    }
}
