//! The result as a person reads it.

use std::fmt::Write as _;

use glovebox_model::ByteString;

use super::contender::Contender;
use super::peer::Absent;
use super::report::{Measured, Report, Row};
use super::stage::Payload;
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
    if !report.twins.is_empty() {
        let mut table = Table::new(["BWRAP", "WHAT OF OUR PLAN DOES THE SAME"]);
        for twin in &report.twins {
            table.push([twin.bwrap.into(), twin.ours.into()]);
        }
        sections.push(table.text(paint));
    }
    sections.push(commands(&report.rows));
    text.push_str(&sections.join("\n"));
    text.push_str(&absent(&report.absent));
    text
}

/// Who would take part, without measuring anything.
pub(super) fn list(contenders: &[Contender], missing: &[Absent], paint: Paint) -> String {
    let mut table = Table::new(["NAME", "PROGRAM", "WHAT"]);
    for contender in contenders {
        let program = contender.payload.argv().join(" ");
        table.push([
            contender.name().into(),
            program.into(),
            contender.what().into(),
        ]);
    }
    table.text(paint) + &absent(missing)
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
        table.push(match &row.result {
            Measured::Samples(it) => [
                row.name.into(),
                time(it.min_us).into(),
                time(it.p50_us).into(),
                time(it.p99_us).into(),
                row.of_baseline
                    .map_or_else(nothing, |it| format!("{it:.2}").into()),
                it.count.to_string().into(),
                row.what.into(),
            ],
            Measured::Failure(why) => [
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

fn comparisons(report: &Report) -> Table<4> {
    let mut table = Table::new(["RATIO OF P50", "PROGRAM", "RATIO", "AIM"]);
    for comparison in &report.comparisons {
        let program = match comparison.payload {
            Payload::True => "true",
            Payload::Python => "python",
        };
        table.push([
            (&comparison.what).into(),
            program.into(),
            format!("{:.2}", comparison.ratio).into(),
            comparison.aim.unwrap_or("-").into(),
        ]);
    }
    table
}

fn memory(report: &Report) -> Table<5> {
    let mut table = Table::new(["WHILE IT SLEEPS", "PROCESS", "RSS", "PSS", "PRIVATE"]);
    let kilobytes = |bytes: u64| Cell::from(format!("{} kB", bytes / 1024));
    for holding in &report.memory {
        if let Some(why) = &holding.failure {
            let nothing = || Cell::from("-");
            let why = Cell::toned(Tone::Bad, why);
            table.push([holding.name.into(), why, nothing(), nothing(), nothing()]);
        }
        for it in &holding.processes {
            table.push([
                holding.name.into(),
                (&it.process).into(),
                kilobytes(it.rss_bytes),
                kilobytes(it.pss_bytes),
                kilobytes(it.private_bytes),
            ]);
        }
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
        let text = list(&[], &[missing], Paint::Plain);
        assert!(text.ends_with("apt-get install bubblewrap\n"), "{text}");
    }
}
