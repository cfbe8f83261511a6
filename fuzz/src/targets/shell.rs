//! Shell scripts: any bytes give commands that have words and places, or are blind.

use glovebox_model::{ByteString, Program};
use glovebox_risk::{Unclear, read, signals};

use super::{Target, as_it_is};

pub const TARGET: Target = Target {
    name: "shell",
    run,
    seeds,
    mend: as_it_is,
    words: &[
        b"$(",
        b")",
        b"`",
        b"'",
        b"\"",
        b"\\",
        b"\\\n",
        b"${",
        b"}",
        b"$((",
        b"))",
        b"<(",
        b"<<E\n",
        b"\nE\n",
        b"|",
        b"&&",
        b";",
        b"\n",
        b"if ",
        b"; then ",
        b"; fi",
        b"do ",
        b"done",
        b"case x in a) ",
        b";; esac",
        b"[[ ",
        b" ]]",
        b"f() { ",
        b"env ",
        b"sh -c '",
        b"eval ",
        b"xargs ",
        b"find . -exec ",
        b"python3 -c '",
        b"PATH=",
        b"a[",
        b"]=",
        b"{a,b}",
        b"$'\\x41'",
        b" >f",
        b" 2>&1",
    ],
};

fn run(bytes: &[u8]) -> Result<String, String> {
    let script = ByteString::new(bytes).ok_or("a NUL byte")?;
    let program = Program::Shell { script };
    let reading = read(&program);
    let lines = bytes.split(|it| *it == b'\n').count();
    for command in &reading.commands {
        assert!(!command.words.is_empty(), "a command without words");
        assert!(command.at.line as usize <= lines, "a place behind the end");
    }
    let found = signals(&program);
    assert!(found.len() <= 64, "{} signals", found.len());
    if reading
        .blind
        .iter()
        .any(|it| matches!(it.why, Unclear::Syntax | Unclear::TooLarge))
    {
        assert!(
            found.iter().any(|it| it.tier >= glovebox_model::Tier::High),
            "not read, and no risk"
        );
    }
    let why: Vec<String> = reading
        .blind
        .iter()
        .map(|it| format!("{:?}", it.why))
        .collect();
    let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
    Ok([why.join("\n"), names.join("\n")].join("\n"))
}

fn seeds() -> Vec<Vec<u8>> {
    [
        "ls -l | grep x > out; rm -rf /tmp/x",
        "for f in *.c; do cc \"$f\" -o `basename $f .c`; done",
        "cat <<E | sh\n$(id) ${x:-y}\nE\nif [[ -f x ]]; then env A=1 nice sh -c 'a; b'; fi",
        "f() { case $1 in a|b) echo $((1 + x));; esac; }; f <(a) 2>&1 &",
    ]
    .iter()
    .map(|it| it.as_bytes().to_vec())
    .collect()
}
