//! `KEY=VALUE` as a change of settings.

use glovebox_model::{Code, Error, Result, Settings, Stage};
use serde_json::{Map, Value};

/// What is to be set, all of it or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change(Vec<(Vec<String>, Value)>);

impl Change {
    pub(crate) fn parse(words: &[String]) -> Result<Self> {
        let parsed: Vec<_> = words
            .iter()
            .map(|word| parse(word))
            .collect::<Result<_>>()?;
        for (index, (path, _)) in parsed.iter().enumerate() {
            if parsed[..index].iter().any(|(other, _)| other == path) {
                return Err(invalid(format!("`{}` is given twice", path.join("."))));
            }
        }
        let change = Self(parsed);
        // Names that no setting has are found here, whoever would be asked.
        change.apply(&Settings::default())?;
        Ok(change)
    }

    /// As the API takes it: a JSON merge patch, in which null means the default.
    pub(crate) fn patch(&self) -> Value {
        let mut patch = Value::Object(Map::new());
        for (path, value) in &self.0 {
            put(&mut patch, path, value.clone());
        }
        patch
    }

    pub(crate) fn apply(&self, settings: &Settings) -> Result<Settings> {
        let refused =
            |error: serde_json::Error| {
                invalid("the settings would not be valid").caused_by(error).hint(
                "`glovebox settings show` lists the names; values are whole numbers or `none`",
            )
            };
        let mut changed = serde_json::to_value(settings).map_err(refused)?;
        for (path, value) in &self.0 {
            match value {
                Value::Null => take(&mut changed, path),
                value => put(&mut changed, path, value.clone()),
            }
        }
        serde_json::from_value(changed).map_err(refused)
    }
}

/// An agent's own name may hold dots: what stands between the first and the last belongs to it.
fn parse(word: &str) -> Result<(Vec<String>, Value)> {
    const AGENTS: &str = "agent_budgets";
    const BUDGET: [&str; 3] = [
        "execs_per_hour",
        "cpu_seconds_per_hour",
        "bytes_out_per_hour",
    ];
    let shown: String = word.chars().take(80).flat_map(char::escape_debug).collect();
    let (key, value) = word.split_once('=').ok_or_else(|| {
        invalid(format!("`{shown}` has no `=`")).hint("write `max_concurrent_execs=8`")
    })?;
    let value = match value {
        "none" => Value::Null,
        number => number.parse::<u32>().map(Value::from).map_err(|_| {
            invalid(format!("`{shown}` does not set a whole number"))
                .hint("write a number, or `none` to take a limit away")
        })?,
    };
    let owned = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect();
    let path: Vec<String> = match key.split_once('.') {
        Some((AGENTS, rest)) => match rest.rsplit_once('.') {
            Some((agent, last)) if BUDGET.contains(&last) => owned(&[AGENTS, agent, last]),
            _ => owned(&[AGENTS, rest]),
        },
        _ => owned(&key.split('.').collect::<Vec<_>>()),
    };
    if path.iter().any(String::is_empty) {
        return Err(invalid(format!("`{shown}` names no setting")));
    }
    Ok((path, value))
}

fn put(target: &mut Value, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *target = value;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(fields) = target {
        put(fields.entry(first).or_insert(Value::Null), rest, value);
    }
}

fn take(target: &mut Value, path: &[String]) {
    match path {
        [] => {}
        [last] => {
            if let Value::Object(fields) = target {
                fields.remove(last);
            }
        }
        [first, rest @ ..] => {
            if let Some(below) = target.get_mut(first) {
                take(below, rest);
            }
        }
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(words: &[&str]) -> Result<Change> {
        Change::parse(
            &words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn the_same_words_change_a_server_and_a_directory() {
        let change = change(&[
            "max_concurrent_execs=8",
            "max_queued=none",
            "budget.execs_per_hour=10",
            "agent_budgets.ci.bot.cpu_seconds_per_hour=60",
        ])
        .unwrap();
        assert_eq!(
            change.patch(),
            json!({"max_concurrent_execs": 8, "max_queued": null,
                   "budget": {"execs_per_hour": 10},
                   "agent_budgets": {"ci.bot": {"cpu_seconds_per_hour": 60}}})
        );
        let before = Settings {
            max_queued: 7,
            ..Settings::default()
        };
        let after = change.apply(&before).unwrap();
        assert_eq!(after.max_concurrent_execs, 8);
        assert_eq!(after.max_queued, Settings::QUEUED);
        assert_eq!(after.budget.execs_per_hour, Some(10));
        assert_eq!(after.agent_budgets["ci.bot"].cpu_seconds_per_hour, Some(60));
    }

    #[test]
    fn none_takes_away() {
        let mut before = Settings {
            max_concurrent_per_user: Some(2),
            ..Settings::default()
        };
        before
            .agent_budgets
            .insert("ci".to_owned(), glovebox_model::Budget::default());
        let gone = change(&["max_concurrent_per_user=none", "agent_budgets.ci=none"]).unwrap();
        assert_eq!(gone.apply(&before).unwrap(), Settings::default());
    }

    #[test]
    fn what_is_no_setting_is_refused_before_anybody_is_asked() {
        for wrong in [
            &["max_concurrent_execs"][..],
            &["max_concurrent_execs="],
            &["max_concurrent_execs=-1"],
            &["max_concurrent_execs=many"],
            &["max_queued=1", "max_queued=2"],
            &["no_such=1"],
            &["budget=1"],
            &["budget.no_such=1"],
            &["agent_budgets.ci=1"],
            &["agent_budgets.=none"],
            &["=1"],
        ] {
            let error = change(wrong).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{wrong:?}");
        }
    }
}
