//! The budgets, and what is told of them.

use std::fmt;

/// What is counted. How, says the module that counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Calls,
    Faults,
    Syncs,
    Made,
    ResidentKb,
    Relocations,
    LoadedKb,
    CodeKb,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Calls => "system calls",
            Self::Faults => "page faults",
            Self::Syncs => "syncs",
            Self::Made => "files made",
            Self::ResidentKb => "kB resident at most",
            Self::Relocations => "relocations",
            Self::LoadedKb => "kB in the file without symbols",
            Self::CodeKb => "kB of code",
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) what: &'static str,
    pub(crate) unit: Unit,
    pub(crate) most: u64,
}

const fn row(what: &'static str, unit: Unit, most: u64) -> Budget {
    Budget { what, unit, most }
}

/// What was counted when the row was last changed and 5 to 10 % more, syncs and files to the letter.
/// Whoever needs more changes the row and says in the commit what for.
pub(crate) const BUDGETS: &[Budget] = &[
    row("binary", Unit::Relocations, 123_000),
    row("binary", Unit::LoadedKb, 39_000),
    row("binary", Unit::CodeKb, 25_700),
    row("run", Unit::Calls, 1240),
    row("run", Unit::Syncs, 3),
    row("run", Unit::Made, 43),
    row("run", Unit::Faults, 1500),
    row("run", Unit::ResidentKb, 21_700),
    row("pooled exec", Unit::Calls, 790),
    row("pooled exec", Unit::Syncs, 2),
    row("pooled exec", Unit::Made, 41),
    row("pooled exec", Unit::Faults, 260),
    row("pooled exec", Unit::ResidentKb, 50_500),
    row("kept exec", Unit::Calls, 230),
    row("kept exec", Unit::Syncs, 2),
    row("kept exec", Unit::Made, 6),
    row("kept exec", Unit::Faults, 60),
    row("kept exec", Unit::ResidentKb, 50_500),
    row("MCP call", Unit::Calls, 850),
    row("MCP call", Unit::Syncs, 2),
    row("MCP call", Unit::Made, 41),
    row("MCP call", Unit::Faults, 260),
    row("MCP call", Unit::ResidentKb, 51_500),
];

/// Below this part of its budget a row says that it could be tightened.
const LOOSE_PERCENT: u64 = 70;

#[derive(Debug, Clone)]
pub(crate) struct Spent {
    pub(crate) what: &'static str,
    pub(crate) unit: Unit,
    pub(crate) amount: u64,
}

impl Spent {
    pub(crate) fn new(what: &'static str, unit: Unit, amount: u64) -> Self {
        Self { what, unit, amount }
    }

    fn is_of(&self, row: &Budget) -> bool {
        (self.what, self.unit) == (row.what, row.unit)
    }
}

pub(crate) fn print(spent: &[Spent]) {
    println!(
        "{:<12} {:<31} {:>8} {:>8}",
        "what", "unit", "spent", "budget"
    );
    for it in spent {
        let budget = BUDGETS.iter().find(|row| it.is_of(row));
        let most = budget.map_or(0, |row| row.most);
        let hint = match it.amount * 100 < most * LOOSE_PERCENT {
            true => "  the budget can be tightened",
            false => "",
        };
        println!(
            "{:<12} {:<31} {:>8} {most:>8}{hint}",
            it.what, it.unit, it.amount
        );
    }
}

/// Whether any of these is over its budget.
pub(crate) fn exceeds(spent: &[Spent]) -> bool {
    let is_over = |it: &Spent| {
        let mut rows = BUDGETS.iter().filter(|row| it.is_of(row));
        rows.any(|row| it.amount > row.most)
    };
    spent.iter().any(is_over)
}

/// One line for each row that is overspent or was not counted, and for what has no row.
pub(crate) fn over(spent: &[Spent]) -> Vec<String> {
    let mut told = Vec::new();
    for row in BUDGETS {
        let Budget { what, unit, most } = row;
        match spent.iter().find(|it| it.is_of(row)) {
            None => told.push(format!("`{what}`: nobody counted the {unit}")),
            Some(it) if it.amount > *most => {
                let more = it.amount - most;
                let percent = more * 100 / most.max(&1);
                told.push(format!(
                    "`{what}`: {} {unit}, the budget is {most} ({more} or {percent} % over)",
                    it.amount
                ));
            }
            Some(_) => {}
        }
    }
    for it in spent {
        if !BUDGETS.iter().any(|row| it.is_of(row)) {
            told.push(format!("`{}`: no budget for {}", it.what, it.unit));
        }
    }
    told
}
