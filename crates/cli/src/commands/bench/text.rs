//! The result as a person reads it.

use std::fmt::Write as _;

use super::contender::Contender;
use super::peer::Absent;
use super::report::{Measured, Report, Row};
use super::stage::Payload;
use crate::render::printable;

pub(super) fn report(report: &Report) -> String {
    let mut text = String::new();
    let host = &report.host;
    let _ = writeln!(
        text,
        "glovebox {} ({} build) as {}; Linux {} {}; {} x {}; {} MiB; control groups: {}\n",
        host.version,
        host.build,
        host.user,
        host.kernel,
        host.machine,
        host.processors,
        host.processor,
        host.memory_bytes >> 20,
        host.cgroups,
    );
    for payload in Payload::ALL {
        let rows: Vec<&Row> = report.rows.iter().filter(|it| it.payload == payload).collect();
        if !rows.is_empty() {
            table(&mut text, &payload.argv().join(" "), &rows);
        }
    }
    comparisons(&mut text, report);
    memory(&mut text, report);
    commands(&mut text, &report.rows);
    if !report.twins.is_empty() {
        let _ = writeln!(text, "{:<44} WHAT OF OUR PLAN DOES THE SAME", "BWRAP");
        for twin in &report.twins {
            let _ = writeln!(text, "{:<44} {}", twin.bwrap, twin.ours);
        }
        text.push('\n');
    }
    absent(&mut text, &report.absent);
    text
}

/// Who would take part, without measuring anything.
pub(super) fn list(contenders: &[Contender], missing: &[Absent]) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{:<20} {:<34} WHAT", "NAME", "PROGRAM");
    for contender in contenders {
        let program = contender.payload.argv().join(" ");
        let (name, what) = (contender.name(), contender.what());
        let _ = writeln!(text, "{name:<20} {program:<34} {what}");
    }
    text.push('\n');
    absent(&mut text, missing);
    text
}

fn table(text: &mut String, program: &str, rows: &[&Row]) {
    let _ = writeln!(text, "{program}");
    let _ = writeln!(
        text,
        "{:<20} {:>10} {:>10} {:>10} {:>9} {:>5}  WHAT",
        "NAME", "MIN", "P50", "P99", "x VFORK", "N"
    );
    for row in rows {
        let _ = match &row.result {
            Measured::Samples(it) => writeln!(
                text,
                "{:<20} {:>10} {:>10} {:>10} {:>9} {:>5}  {}",
                row.name,
                time(it.min_us),
                time(it.p50_us),
                time(it.p99_us),
                row.of_baseline.map(|it| format!("{it:.2}")).unwrap_or_default(),
                it.count,
                row.what,
            ),
            Measured::Failure(why) => writeln!(text, "{:<20} {}", row.name, printable(why)),
        };
    }
    text.push('\n');
}

fn comparisons(text: &mut String, report: &Report) {
    let _ = writeln!(text, "{:<34} {:<10} {:>8}  AIM", "RATIO OF P50", "PROGRAM", "RATIO");
    for comparison in &report.comparisons {
        let program = match comparison.payload {
            Payload::True => "true",
            Payload::Python => "python",
        };
        let _ = writeln!(
            text,
            "{:<34} {:<10} {:>8.2}  {}",
            comparison.what,
            program,
            comparison.ratio,
            comparison.aim.unwrap_or("-"),
        );
    }
    text.push('\n');
}

fn memory(text: &mut String, report: &Report) {
    let _ = writeln!(
        text,
        "{:<20} {:<20} {:>10} {:>10} {:>10}",
        "WHILE IT SLEEPS", "PROCESS", "RSS", "PSS", "PRIVATE"
    );
    for holding in &report.memory {
        if let Some(why) = &holding.failure {
            let _ = writeln!(text, "{:<20} {}", holding.name, printable(why));
        }
        for it in &holding.processes {
            let _ = writeln!(
                text,
                "{:<20} {:<20} {:>10} {:>10} {:>10}",
                holding.name,
                printable(&it.process),
                kilobytes(it.rss_bytes),
                kilobytes(it.pss_bytes),
                kilobytes(it.private_bytes),
            );
        }
    }
    text.push('\n');
}

fn commands(text: &mut String, rows: &[Row]) {
    let _ = writeln!(text, "COMMANDS");
    for row in rows.iter().filter(|row| row.payload == Payload::True && !row.argv.is_empty()) {
        let words: Vec<String> = row.argv.iter().map(|word| quoted(word)).collect();
        let _ = writeln!(text, "{:<20} {}", row.name, words.join(" "));
    }
    text.push('\n');
}

fn absent(text: &mut String, missing: &[Absent]) {
    for peer in missing {
        let _ = writeln!(text, "not measured: {}: {}; {}", peer.name, peer.why, peer.hint);
    }
}

fn time(micros: f64) -> String {
    if micros < 1000.0 {
        format!("{micros:.0} us")
    } else {
        format!("{:.2} ms", micros / 1000.0)
    }
}

fn kilobytes(bytes: u64) -> String {
    format!("{} kB", bytes / 1024)
}

/// So that a shell reads the word back as it was.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", printable(word).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_is_quoted() {
        for (word, expected) in [
            ("--memory=1.5", "--memory=1.5"),
            ("", "''"),
            ("print(1)", "'print(1)'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!(time(416.4), "416 us");
        assert_eq!(time(15_320.0), "15.32 ms");
    }
}
