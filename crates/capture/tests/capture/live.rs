//! What is shown while it comes must not wait for nothing.

use crate::{secrets, shown};

#[test]
fn what_no_secret_begins_with_comes_at_once() {
    let secrets = secrets(&[("db", b"sk-live-T0pS3cretV4lue")]);
    let mut redactor = secrets.redactor();
    for (said, comes) in [
        ("hello\n", "hello\n"),
        ("password: ", "password: "),
        ("progress 10%\r", "progress 10%\r"),
        // A wrapped line would be longer than this one.
        ("a line ends with sk\n", "a line ends with sk\n"),
        ("prompt sk-", "prompt "),
        ("x", "sk-x"),
        ("sk-live-", ""),
        ("T0pS3cretV4lu", ""),
        ("!", "sk-live-T0pS3cretV4lu!"),
        ("sk-live-T0pS3cretV4lue", "[secret db]"),
        (": \x1b[1m", ": \x1b[1m"),
        (
            "\n 1) one\n 2) two\n your choice: ",
            "\n 1) one\n 2) two\n your choice: ",
        ),
        ("\n 10 20 ", "\n 10 20 "),
        ("\n602dbaa One: ", "\n602dbaa One: "),
        ("\n12345678 ", "\n12345678 "),
    ] {
        let mut out = Vec::new();
        redactor.push(said.as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), comes, "after {said:?}");
    }
}

#[test]
fn a_beginning_that_stays_one_comes_out_at_the_end() {
    let secrets = secrets(&[("db", b"sk-live-T0pS3cretV4lue")]);
    let mut redactor = secrets.redactor();
    let mut out = Vec::new();
    redactor.push(b"sk-live-T0pS3", &mut out);
    assert_eq!((out.len(), redactor.held()), (0, 13));
    redactor.finish(&mut out);
    assert_eq!((&out[..], redactor.held()), (&b"sk-live-T0pS3"[..], 0));
    // The next stream begins anew.
    redactor.push(b"cretV4lue.", &mut out);
    assert!(out.ends_with(b"S3cretV4lue."));
    assert_eq!((redactor.masked(), redactor.found()), (0, None));
}

#[test]
fn less_is_held_than_the_longest_form_has() {
    let secrets = secrets(&[("db", b"sk-live-T0pS3cretV4lue"), ("pin", b"1234 5678 9")]);
    let mut redactor = secrets.redactor();
    let mut out = Vec::new();
    for form in ["\\u0073\\u006b\\u002d", "736b2d6c", "sk-live-", "c2stbGl2"] {
        for _ in 0..200 {
            for byte in form.bytes() {
                redactor.push(&[byte], &mut out);
                assert!(redactor.held() < secrets.longest());
            }
        }
    }
}

/// Who cannot wait gets the beginning, and never the whole.
#[test]
fn what_was_let_out_too_early_is_followed_by_a_mark() {
    let value = b"sk-live-T0pS3cretV4lue_x9";
    let secrets = secrets(&[("db", value)]);
    for cut in 1..value.len() {
        for second in cut..value.len() {
            let mut redactor = secrets.redactor();
            let mut out = Vec::new();
            redactor.push(b"a ", &mut out);
            redactor.push(&value[..cut], &mut out);
            redactor.release(&mut out);
            assert_eq!(redactor.held(), 0);
            redactor.push(&value[cut..second], &mut out);
            redactor.release(&mut out);
            redactor.push(&value[second..], &mut out);
            redactor.push(b" b", &mut out);
            redactor.finish(&mut out);
            let begun = shown(&value[..second]);
            assert_eq!(
                shown(&out),
                format!("a {begun}[secret db] b"),
                "{cut} {second}"
            );
        }
    }
    // What goes on otherwise comes out whole, and once.
    let mut redactor = secrets.redactor();
    let mut out = Vec::new();
    for piece in [&b"sk-li"[..], b"ve-other sk-", b"x"] {
        redactor.push(piece, &mut out);
        redactor.release(&mut out);
    }
    redactor.finish(&mut out);
    assert_eq!(shown(&out), "sk-live-other sk-x");
}
