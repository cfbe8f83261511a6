//! What holds for any text.

use glovebox_model::{ByteString, Program};
use glovebox_risk::{Language, catalogue, code_signals, read, signals};
use proptest::prelude::*;

use super::{commands, shell, tier};

fn pieces() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "ls",
        "rm",
        "-rf",
        "/",
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "|",
        "&&",
        ";",
        "\n",
        " ",
        "{",
        "}",
        "((",
        "))",
        "if",
        "then",
        "fi",
        "do",
        "done",
        "for",
        "x",
        "in",
        "case",
        "esac",
        ";;",
        "<<E",
        "E",
        "\nE\n",
        ">",
        "<(",
        "${",
        "[[",
        "]]",
        "env",
        "sh -c",
        "eval",
        "\\",
        "\\\n",
        "$'",
        "~",
        "*",
        "=",
        "a=",
        "a[",
        "]",
        "#",
        "é",
        "function",
        "()",
        "import os",
        "os.system",
        "(",
        "eval(",
        "[::-1]",
        "'a'+'b'",
        "getattr",
        ",",
        ".",
        ":",
        "require(",
        "`${",
        "=>",
    ]);
    prop::collection::vec(words, 0..40).prop_map(|it| it.concat())
}

fn lines() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "ls -l",
        "rm -rf /",
        "curl x | sh",
        "echo hi > f",
        "git push",
        "for x in a; do sudo rm x; done",
        "cat ~/.ssh/id_rsa",
        "python3 -c 'eval(x)'",
        "true",
        "if a; then b; fi",
        "f() { ls; }",
        "cat <<E\nx\nE",
        "x=1",
    ]);
    prop::collection::vec(words, 1..6).prop_map(|it| it.join("\n"))
}

fn python() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "import os",
        "os.system('x')",
        "eval(x)",
        "print(1)",
        "f = open('a', 'w')",
        "import json as j",
        "j.load(f)",
        "def g():\n    return getattr(x, y)",
        "from subprocess import run",
        "x = 'a' + 'b'",
    ]);
    prop::collection::vec(words, 1..6).prop_map(|it| it.join("\n"))
}

fn readable(all: &[glovebox_model::RiskSignal]) -> bool {
    all.iter()
        .all(|it| it.name != "unreadable" && it.name != "too_large")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(text in pieces(), any in prop::collection::vec(any::<u8>(), 0..200)) {
        for bytes in [text.into_bytes(), any] {
            for language in [Language::Shell, Language::Python, Language::Javascript] {
                prop_assert!(code_signals(language, &bytes).len() <= 64);
            }
            if let Some(script) = ByteString::new(bytes) {
                let program = Program::Shell { script };
                prop_assert!(read(&program).commands.iter().all(|it| !it.words.is_empty()));
            }
        }
    }

    #[test]
    fn more_lines_never_lower_a_script(script in lines(), more in pieces()) {
        let before = signals(&shell(&script));
        prop_assume!(readable(&before));
        let after = signals(&shell(&format!("{script}\n{more}")));
        prop_assert!(tier(&after) >= tier(&before), "{before:?} {after:?}");
    }

    #[test]
    fn more_lines_never_lower_python(code in python(), more in pieces()) {
        let before = code_signals(Language::Python, code.as_bytes());
        prop_assume!(readable(&before));
        let after = code_signals(Language::Python, format!("{code}\n{more}").as_bytes());
        prop_assert!(tier(&after) >= tier(&before), "{before:?} {after:?}");
    }

    #[test]
    fn wrappers_change_nothing(words in prop::collection::vec("[a-z]{1,6}|'[ -&(-~]{0,6}'", 0..5)) {
        let plain = format!("prog {}", words.join(" "));
        let expected = commands(&read(&shell(&plain)));
        for wrapper in ["env ", "nohup ", "command ", "nice -n 3 ", "env A=1 timeout 5 ", "exec ", "sudo -u x "] {
            let reading = read(&shell(&format!("{wrapper}{plain}")));
            prop_assert_eq!(&commands(&reading), &expected);
        }
    }

    #[test]
    fn signals_are_in_the_catalogue(script in lines(), code in python()) {
        for signal in signals(&shell(&script)).into_iter().chain(code_signals(Language::Python, code.as_bytes())) {
            prop_assert!(catalogue().iter().any(|it| it.name == signal.name && it.tier == signal.tier));
        }
    }
}
