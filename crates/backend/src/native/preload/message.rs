//! Which orders an interpreter that was started ahead may take, and how one is written for it.

use glovebox_model::{ByteString, Result};

use super::{Language, Preload};
use crate::native::sandbox::broken;
use crate::spec::Order;

/// linux/binfmts.h: longer ones cannot be executed, and are refused there as ever.
const STRING_MAX: usize = 128 << 10;
/// Less than what the kernel takes in sum, whatever the limit of the stack is.
const SUM_MAX: usize = 1 << 20;

/// Read by the loader, by the C library or by the interpreter while it starts. What only programs
/// read may differ.
const READ_AT_START: [&str; 13] = [
    "CHARSET",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOCPATH",
    "GCONV_PATH",
    "NLSPATH",
    "PATH",
    "TZ",
    "TZDIR",
    "ICU_DATA",
    "UV_THREADPOOL_SIZE",
    "UV_USE_IO_URING",
];
const READ_AT_START_BELOW: [&str; 9] = [
    "DYLD_", "GLIBC_", "LC_", "LD_", "MALLOC_", "NODE_", "OPENSSL_", "PYTHON", "SSL_",
];

impl Preload {
    /// Whether it would behave as if it had been started with this order.
    pub fn takes(&self, order: &Order) -> bool {
        self.code(order).is_some() && self.fits(&order.env) && self.reads(order)
    }

    pub(super) fn code<'order>(&self, order: &'order Order) -> Option<&'order str> {
        let [command, option, code] = &order.argv[..] else {
            return None;
        };
        let same = *command == self.command
            && option.as_bytes() == self.language.option().as_bytes()
            && order.path == self.path;
        let code = std::str::from_utf8(code.as_bytes()).ok()?;
        let plain = match self.language {
            Language::Python => true,
            // The first is taken for an option, and others for a module: only a fresh one decides.
            Language::Node => !code.starts_with('-') && !may_be_module(code),
        };
        (same && plain && code.len() < STRING_MAX).then_some(code)
    }

    /// JavaScript has no strings for other bytes, though a process may pass them on.
    fn reads(&self, order: &Order) -> bool {
        let is_text = |bytes: &ByteString| std::str::from_utf8(bytes.as_bytes()).is_ok();
        let mut pairs = order.env.iter();
        match self.language {
            Language::Python => true,
            Language::Node => {
                is_text(&order.cwd) && pairs.all(|(key, value)| is_text(key) && is_text(value))
            }
        }
    }

    fn fits(&self, env: &[(ByteString, ByteString)]) -> bool {
        let sum: usize = env
            .iter()
            .map(|(key, value)| key.as_bytes().len() + value.as_bytes().len() + 2)
            .sum();
        let sound = |(key, value): &(ByteString, ByteString)| {
            let length = key.as_bytes().len() + value.as_bytes().len() + 1;
            !key.as_bytes().is_empty() && !key.as_bytes().contains(&b'=') && length < STRING_MAX
        };
        sum < SUM_MAX
            && env.iter().all(sound)
            && once_each(env)
            && read_at_start(env) == read_at_start(&self.env)
    }
}

/// Words that a script of the old kind has no use for at its top.
fn may_be_module(code: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == '$';
    code.split(|it: char| !is_part(it))
        .any(|word| matches!(word, "import" | "export" | "await"))
        // Names may be written in other ways.
        || code.contains("\\u")
}

fn once_each(env: &[(ByteString, ByteString)]) -> bool {
    let keys: std::collections::BTreeSet<&[u8]> =
        env.iter().map(|(key, _)| key.as_bytes()).collect();
    keys.len() == env.len()
}

fn read_at_start(env: &[(ByteString, ByteString)]) -> Vec<(&[u8], &[u8])> {
    let read = |key: &[u8]| {
        READ_AT_START.iter().any(|it| it.as_bytes() == key)
            || READ_AT_START_BELOW
                .iter()
                .any(|it| key.starts_with(it.as_bytes()))
    };
    let mut found: Vec<_> = env
        .iter()
        .map(|(key, value)| (key.as_bytes(), value.as_bytes()))
        .filter(|(key, _)| read(key))
        .collect();
    found.sort_unstable();
    found
}

/// Four bytes of length, then: whether there is standard input, the code, the directory, and the
/// environment as a count of pairs. Each string has its length before it.
pub(super) fn encode(code: &str, order: &Order, has_stdin: bool) -> Result<Vec<u8>> {
    let mut body = vec![u8::from(has_stdin)];
    string(&mut body, code.as_bytes())?;
    string(&mut body, order.cwd.as_bytes())?;
    body.extend(length(order.env.len())?);
    for (key, value) in &order.env {
        string(&mut body, key.as_bytes())?;
        string(&mut body, value.as_bytes())?;
    }
    let mut message = length(body.len())?.to_vec();
    message.extend(body);
    Ok(message)
}

fn string(body: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    body.extend(length(bytes.len())?);
    body.extend_from_slice(bytes);
    Ok(())
}

fn length(length: usize) -> Result<[u8; 4]> {
    let length = u32::try_from(length).map_err(|error| broken(&error))?;
    Ok(length.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> ByteString {
        ByteString::try_from(text).unwrap()
    }

    fn pairs(env: &[(&str, &str)]) -> Vec<(ByteString, ByteString)> {
        env.iter()
            .map(|(key, value)| (text(key), text(value)))
            .collect()
    }

    fn preload(language: Language, command: &str) -> Preload {
        Preload {
            language,
            command: text(command),
            env: pairs(&[("HOME", "/home/sandbox"), ("LANG", "C.UTF-8")]),
            path: vec![text("/usr/bin")],
        }
    }

    fn order(argv: &[&str], env: &[(&str, &str)]) -> Order {
        Order {
            argv: argv.iter().map(|it| text(it)).collect(),
            env: pairs(env),
            cwd: text("/workspace/work"),
            path: vec![text("/usr/bin")],
        }
    }

    const START: [(&str, &str); 2] = [("LANG", "C.UTF-8"), ("HOME", "/home/sandbox")];

    #[test]
    fn only_the_very_command_with_one_program_is_taken() {
        let python = preload(Language::Python, "python3");
        let takes = |argv: &[&str]| python.takes(&order(argv, &START));
        assert!(takes(&["python3", "-c", "print(1)"]));
        assert!(takes(&["python3", "-c", ""]));
        assert!(!takes(&["python", "-c", "print(1)"]));
        assert!(!takes(&["/usr/bin/python3", "-c", "print(1)"]));
        assert!(!takes(&["python3", "-c", "print(1)", "x"]));
        assert!(!takes(&["python3", "-Ic", "print(1)"]));
        assert!(!takes(&["python3", "-e", "print(1)"]));
        assert!(!takes(&["python3", "-c"]));
        assert!(!takes(&[]));
        let node = preload(Language::Node, "node");
        assert!(node.takes(&order(&["node", "-e", "1"], &START)));
        for code in ["-1", "await 1", "import fs from 'fs'", "x;export{x}"] {
            assert!(!node.takes(&order(&["node", "-e", code], &START)), "{code}");
        }
        let mut elsewhere = order(&["python3", "-c", ""], &START);
        elsewhere.path.push(text("/opt/bin"));
        assert!(!python.takes(&elsewhere));
    }

    #[test]
    fn variables_that_were_read_at_the_start_may_not_differ() {
        let python = preload(Language::Python, "python3");
        let takes = |env: &[(&str, &str)]| {
            let mut all = START.to_vec();
            all.extend_from_slice(env);
            python.takes(&order(&["python3", "-c", "1"], &all))
        };
        assert!(takes(&[("GLOVEBOX_EXEC_ID", "x"), ("ANY", "thing")]));
        for key in [
            "PYTHONPATH",
            "PYTHONHASHSEED",
            "LD_PRELOAD",
            "LC_ALL",
            "TZ",
            "PATH",
        ] {
            assert!(!takes(&[(key, "1")]), "{key}");
        }
        assert!(!takes(&[("NODE_OPTIONS", "--inspect")]));
        let other = order(&["python3", "-c", "1"], &[("HOME", "/home/sandbox")]);
        assert!(!python.takes(&other), "one that is missing");
        assert!(!takes(&[("A", "1"), ("A", "2")]), "one that stands twice");
    }

    #[test]
    fn what_could_not_be_executed_is_left_to_be_refused() {
        let python = preload(Language::Python, "python3");
        let long = "#".repeat(STRING_MAX);
        assert!(!python.takes(&order(&["python3", "-c", &long], &START)));
        let mut bytes = order(&["python3", "-c", ""], &START);
        bytes.argv[2] = ByteString::new(vec![0xff]).unwrap();
        assert!(!python.takes(&bytes));
    }
}
