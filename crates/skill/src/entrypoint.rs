//! From the words of an entrypoint and an input to the argv. Each word becomes a word, or none, or
//! of a list several; no shell reads them, and what came from an input is never read again.

use glovebox_model::{ByteString, Program};
use serde_json::Value;

use crate::json::escaped;

pub(crate) const SCRIPTS: &str = "scripts/";
const INPUTS: &str = "/workspace/inputs";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word<'w> {
    Plain(&'w str),
    /// `{input.NAME}`
    Input(&'w str),
    /// `{skill}/FILE`
    File(&'w str),
    /// `{script}`
    Script,
}

fn read(word: &str) -> Result<Word<'_>, String> {
    if word.contains('\0') {
        return Err("holds a NUL byte".to_owned());
    }
    if word == "{script}" {
        return Ok(Word::Script);
    }
    if let Some(file) = word.strip_prefix("{skill}/") {
        let good = |part: &str| !part.is_empty() && part != "." && part != "..";
        return match file.split('/').all(good) && !file.contains('{') {
            true => Ok(Word::File(file)),
            false => Err("names no file of the skill".to_owned()),
        };
    }
    if let Some(name) = word
        .strip_prefix("{input.")
        .and_then(|it| it.strip_suffix('}'))
    {
        return match name.is_empty() || name.contains(['{', '}']) {
            true => Err("names no input".to_owned()),
            false => Ok(Word::Input(name)),
        };
    }
    match ["{input", "{skill", "{script"].iter().any(|it| word.contains(it)) {
        true => Err("has a placeholder that is not the whole word; an input stands alone, as `{input.NAME}`, and a file begins with `{skill}/`".to_owned()),
        false => Ok(Word::Plain(word)),
    }
}

/// What is wrong with which word.
pub(crate) fn problems(words: &[&str], inputs: &Value, files: &[&str]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let said = match read(word) {
            Err(why) => Some(why),
            Ok(Word::Input(_)) if index == 0 => {
                Some("an input cannot say which program runs".to_owned())
            }
            Ok(Word::Plain(word)) if index == 0 && word.starts_with('-') => {
                Some("is no program".to_owned())
            }
            Ok(Word::Input(name)) => not_an_input(inputs, name),
            Ok(Word::File(file)) if !files.contains(&file) => {
                Some(format!("the skill has no file `{file}`"))
            }
            Ok(Word::Script) if index > 0 => Some("`{script}` is the first word".to_owned()),
            Ok(Word::Script) => no_scripts(inputs, files),
            Ok(Word::Plain(_) | Word::File(_)) => None,
        };
        found.extend(said.map(|why| (index, why)));
    }
    found
}

fn property<'v>(inputs: &'v Value, name: &str) -> Option<&'v Value> {
    inputs.pointer(&format!("/properties/{}", escaped(name)))
}

fn not_an_input(inputs: &Value, name: &str) -> Option<String> {
    let Some(schema) = property(inputs, name) else {
        return Some(format!(
            "`{name}` is not among the `properties` of `interface.inputs`"
        ));
    };
    let kind = schema.get("type").and_then(Value::as_str);
    let of_items = schema.pointer("/items/type").and_then(Value::as_str);
    match (kind, of_items) {
        (Some("string" | "integer" | "number" | "boolean"), _)
        | (Some("array"), Some("string")) => None,
        _ => Some(format!(
            "input `{name}` cannot be a word: its `type` must be a text, a number, a boolean or a list of texts"
        )),
    }
}

fn no_scripts(inputs: &Value, files: &[&str]) -> Option<String> {
    let listed = property(inputs, "script").and_then(|it| it.get("enum"));
    let Some(listed) = listed.and_then(Value::as_array) else {
        return Some("input `script` must list the scripts in its `enum`".to_owned());
    };
    let wrong = listed.iter().find(|name| {
        let name = name.as_str().unwrap_or_default();
        let file = format!("{SCRIPTS}{name}");
        interpreter(name).is_none() || !files.contains(&file.as_str())
    });
    wrong.map(|name| format!("the skill has no script {name} that can be run"))
}

/// What runs a script of this name.
pub(crate) fn interpreter(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "py" => Some("python3"),
        "sh" => Some("bash"),
        "js" | "mjs" | "cjs" => Some("node"),
        _ => None,
    }
}

/// The tool that a skill is another form of: one whose code is its input.
pub(crate) fn stands_for(words: &[String]) -> Option<&'static str> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [interpreter, flag, code, ..] = words.as_slice() else {
        return None;
    };
    let is_code = matches!(*flag, "-c" | "-lc" | "-e") && code.starts_with("{input.");
    let name = interpreter.rsplit('/').next().unwrap_or(interpreter);
    match name {
        "bash" | "sh" | "dash" if is_code => Some("run_command"),
        "python" | "python3" | "node" if is_code => Some("run_code"),
        _ => None,
    }
}

/// `input` fits the manifest's schema. An input that is not there is left out, with the option
/// before it that it would have been the value of.
pub(crate) fn program(words: &[String], input: &Value, directory: &str) -> Result<Program, String> {
    let mut argv: Vec<String> = Vec::with_capacity(words.len());
    let mut option_before = false;
    for word in words {
        let is_option = word.starts_with('-');
        match read(word)? {
            Word::Plain(word) => argv.push(word.to_owned()),
            Word::File(file) => argv.push(format!("{INPUTS}/{directory}/{file}")),
            Word::Script => {
                let name = input
                    .get("script")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let with = interpreter(name).ok_or("no script is named")?;
                argv.push(with.to_owned());
                argv.push(format!("{INPUTS}/{directory}/{SCRIPTS}{name}"));
            }
            Word::Input(name) => match input.get(name) {
                None | Some(Value::Null) => {
                    if option_before {
                        argv.pop();
                    }
                }
                Some(Value::Array(list)) => {
                    argv.extend(list.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                Some(Value::String(text)) => argv.push(text.clone()),
                Some(other) => argv.push(other.to_string()),
            },
        }
        option_before = is_option;
    }
    typed(argv)
}

/// As what it is known to be, so that its code is looked at as code.
fn typed(argv: Vec<String>) -> Result<Program, String> {
    let mut words = argv
        .into_iter()
        .map(|word| ByteString::try_from(word.as_str()).map_err(|why| format!("a word {why}")));
    let command = words.next().transpose()?.unwrap_or_default();
    let mut args = words.collect::<Result<Vec<_>, _>>()?;
    let shape: Vec<&[u8]> = args.iter().map(ByteString::as_bytes).collect();
    Ok(match (command.as_bytes(), shape.as_slice()) {
        (b"bash", [b"-lc", _]) => Program::Shell {
            script: args.pop().unwrap_or_default(),
        },
        (b"python3", [b"-c", _]) => Program::Python {
            code: args.pop().unwrap_or_default(),
        },
        (b"node", [b"-e", _]) => Program::Javascript {
            code: args.pop().unwrap_or_default(),
        },
        _ => Program::Argv { command, args },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn argv(words: &[&str], input: &Value) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        let made = program(&words, input, "skill/a.b-0").unwrap();
        made.argv().iter().map(ByteString::display).collect()
    }

    #[test]
    fn an_input_is_one_word_whatever_it_holds() {
        let input =
            json!({"a": "x; rm -rf / $(id) {input.b} {skill}/run.py", "b": "secret", "n": 7});
        assert_eq!(
            argv(&["echo", "{input.a}", "{input.n}"], &input),
            ["echo", "x; rm -rf / $(id) {input.b} {skill}/run.py", "7"]
        );
        assert_eq!(
            argv(
                &["echo", "{input.l}"],
                &json!({"l": ["{input.b}", "", "a b"]})
            ),
            ["echo", "{input.b}", "", "a b"]
        );
    }

    #[test]
    fn what_is_not_given_is_left_out_with_its_option() {
        let words = ["python3", "-c", "{input.code}", "{input.path}"];
        assert_eq!(argv(&words, &json!({"code": "1"})), ["python3", "-c", "1"]);
        assert_eq!(argv(&words, &json!({"path": "a.py"})), ["python3", "a.py"]);
        assert_eq!(
            argv(&["ls", "-l", "-w", "{input.w}"], &json!({})),
            ["ls", "-l"]
        );
    }

    #[test]
    fn code_is_known_as_code() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
            program(&words, &json!({"x": "1"}), "skill/a").unwrap()
        };
        assert!(matches!(
            of(&["bash", "-lc", "{input.x}"]),
            Program::Shell { .. }
        ));
        assert!(matches!(
            of(&["python3", "-c", "{input.x}"]),
            Program::Python { .. }
        ));
        assert!(matches!(
            of(&["node", "-e", "{input.x}"]),
            Program::Javascript { .. }
        ));
        assert!(matches!(
            of(&["bash", "-c", "{input.x}"]),
            Program::Argv { .. }
        ));
    }

    #[test]
    fn a_placeholder_is_a_whole_word() {
        for word in [
            "--x={input.a}",
            "{input.}",
            "{input.a}b",
            "{skill}",
            "{skill}/../x",
            "{skill}//x",
            "{script}x",
            "a{skill}/b",
        ] {
            assert!(read(word).is_err(), "{word}");
        }
        for word in ["{print $1}", "{}", "a{b}"] {
            assert_eq!(read(word), Ok(Word::Plain(word)));
        }
    }
}
