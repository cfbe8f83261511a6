//! Images that lie about themselves, and layers that reach for more than their own files.

use std::os::unix::fs::symlink;

use glovebox_model::Code;
use glovebox_workspace::archive::UnpackLimits;
use glovebox_workspace::image::ImageFormat;
use serde_json::json;

use crate::archives::tar::Tar;
use crate::images::made::{
    MACHINE, Oci, Packing, configuration, docker_save, gzip, layers, sha256,
};
use crate::images::state::{name, open, state};

fn image(layers: &[Tar]) -> Vec<u8> {
    let layers: Vec<Vec<u8>> = layers.iter().map(|layer| layer.clone().end()).collect();
    Oci::new(&layers, Packing::Gzip).archive()
}

#[test]
fn a_layer_does_not_write_through_the_links_of_another() {
    let state = state();
    let outside = state.path.join("outside");
    let outside = outside.to_str().unwrap();
    let up = "../".repeat(30);
    for target in [outside, &format!("{up}{}", &outside[1..]), "/proc/self/cwd"] {
        let first = Tar::new().link("x", target);
        for second in [
            Tar::new().file("x/canary", "evil"),
            Tar::new().file("x/.wh.canary", ""),
            Tar::new().file("x/.wh..wh..opq", ""),
            Tar::new().hard("stolen", "x/canary"),
        ] {
            // Refused or inside; `state` looks at the outside each time.
            if let Ok(record) = state.import("planted", &image(&[first.clone(), second])) {
                assert!(!state.has(&record, "stolen"));
            }
        }
    }
}

#[test]
fn a_link_of_an_earlier_layer_leads_into_the_image() {
    let state = state();
    let first = Tar::new()
        .dir("real")
        .link("x", "/real")
        .link("y", "../../../real");
    let second = Tar::new()
        .file("x/a", "a")
        .file("y/b", "b")
        .file("x/.wh.none", "");
    let record = state.import("inside", &image(&[first, second])).unwrap();
    assert_eq!(state.text(&record, "real/a"), "a");
    assert_eq!(state.text(&record, "real/b"), "b");
}

#[test]
fn a_whiteout_takes_away_a_link_and_not_what_it_leads_to() {
    let state = state();
    let outside = state.path.join("outside");
    let first = Tar::new()
        .link("x", outside.to_str().unwrap())
        .file("d/f", "");
    let second = Tar::new().file(".wh.x", "").file(".wh.d", "").file("g", "");
    let record = state.import("whiteout", &image(&[first, second])).unwrap();
    assert!(!state.has(&record, "x"));
    assert!(!state.has(&record, "d"));
    assert!(state.has(&record, "g"));
}

#[test]
fn a_whiteout_has_a_proper_name() {
    let state = state();
    for whiteout in [
        ".wh...",
        ".wh..",
        ".wh.",
        "d/.wh...",
        "../.wh.x",
        "d/../../.wh.x",
    ] {
        let layer = Tar::new().file(whiteout, "");
        let error = state.refusal(&image(&[layers_as_tar(), layer]));
        assert_eq!(error.code, Code::InvalidArgument, "{whiteout}: {error}");
    }
}

fn layers_as_tar() -> Tar {
    Tar::new().file("d/f", "")
}

#[test]
fn an_opaque_root_takes_everything_but_its_own() {
    let state = state();
    let first = Tar::new()
        .file("a/b", "")
        .file("c", "")
        .file("a/own", "old");
    let second = Tar::new()
        .file("a/own", "new")
        .file(".wh..wh..opq", "")
        .file("e", "");
    let record = state.import("opaque", &image(&[first, second])).unwrap();
    assert_eq!(state.text(&record, "a/own"), "new");
    assert!(state.has(&record, "e"));
    assert!(!state.has(&record, "a/b"));
    assert!(!state.has(&record, "c"));
}

#[test]
fn every_blob_is_what_its_name_says() {
    let state = state();
    let good = Oci::new(&layers(), Packing::Gzip);
    let blobs: Vec<String> = good
        .files
        .keys()
        .filter(|name| name.starts_with("blobs"))
        .cloned()
        .collect();
    assert_eq!(blobs.len(), 4);
    for blob in blobs {
        let mut changed = good.clone();
        // One byte in the middle; longer by one; shorter by one; not there at all.
        let bytes = changed.files.get_mut(&blob).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        state.refusal(&changed.archive());
        let mut longer = good.clone();
        longer.files.get_mut(&blob).unwrap().push(b' ');
        state.refusal(&longer.archive());
        let mut shorter = good.clone();
        shorter.files.get_mut(&blob).unwrap().pop();
        state.refusal(&shorter.archive());
        let mut gone = good.clone();
        gone.files.remove(&blob);
        let error = state.refusal(&gone.archive());
        assert!(error.message.contains("is not in it"), "{error}");
    }
    assert_eq!(state.kept(), 0);
}

/// The digest of a packed layer is right, and yet the configuration speaks of another one.
#[test]
fn a_layer_unpacks_to_what_the_configuration_says() {
    let state = state();
    let mut oci = Oci::default();
    let evil = Tar::new().file("evil", "").end();
    let layer = oci.blob(&gzip(&evil), "application/vnd.oci.image.layer.v1.tar+gzip");
    let config = configuration(&layers()[..1], MACHINE).to_string();
    let config = oci.blob(
        config.as_bytes(),
        "application/vnd.oci.image.config.v1+json",
    );
    let manifest = oci.manifest(&config, &[layer], MACHINE);
    oci.index(&[manifest]);
    let error = state.refusal(&oci.archive());
    assert!(error.message.contains("does not unpack to"), "{error}");
    // The same for what `docker save` wrote, which has no other digests.
    let saved = docker_save(std::slice::from_ref(&evil));
    let id = sha256(&[b"id", evil.as_slice()].concat());
    let other = Tar::new().file("like", "").end();
    assert_eq!(other.len(), evil.len());
    let at = saved.windows(evil.len()).position(|it| it == evil).unwrap();
    let mut changed = saved.clone();
    changed[at..at + other.len()].copy_from_slice(&other);
    assert!(String::from_utf8_lossy(&changed).contains(&id));
    let error = state.refusal(&changed);
    assert!(error.message.contains("does not unpack to"), "{error}");
}

/// Two readers would take two images out of it.
#[test]
fn a_document_that_is_index_and_manifest_is_neither() {
    let state = state();
    let mut oci = Oci::default();
    let ours = oci.image(&layers(), Packing::Plain, MACHINE);
    let both = json!({
        "schemaVersion": 2,
        "manifests": [ours],
        "config": oci.blob(b"{}", "application/vnd.oci.image.config.v1+json"),
        "layers": [],
    });
    for kind in [
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
    ] {
        let listed = oci.blob(both.to_string().as_bytes(), kind);
        oci.index(&[listed]);
        let error = state.refusal(&oci.archive());
        assert!(error.message.contains("neither"), "{error}");
    }
    // One whose list and contents disagree on what it is.
    let mut ours = ours;
    ours["mediaType"] = json!("application/vnd.oci.image.index.v1+json");
    oci.index(&[ours]);
    assert!(state.refusal(&oci.archive()).message.contains("neither"));
}

#[test]
fn digests_and_names_cannot_lead_out_of_the_image() {
    let state = state();
    let secret = state.path.join("outside/canary");
    let mut oci = Oci::default();
    for digest in ["sha256:../../../outside/canary", "sha512:00", "../x", ""] {
        oci.index(&[json!({ "digest": digest, "size": 1 })]);
        state.refusal(&oci.archive());
    }
    let up = "../".repeat(20);
    for path in [
        secret.to_str().unwrap().to_owned(),
        format!("{up}{}", secret.display()),
        "../outside/canary".to_owned(),
    ] {
        for list in [
            json!([{ "Config": path, "Layers": [] }]),
            json!([{ "Config": "c.json", "Layers": [path] }]),
        ] {
            let config = configuration(&[vec![]], MACHINE).to_string();
            let archive = Tar::new()
                .file("manifest.json", list.to_string())
                .file("c.json", &config)
                .end();
            state.refusal(&archive);
            let folder = tempfile::tempdir_in(&state.path).unwrap();
            std::fs::write(folder.path().join("manifest.json"), list.to_string()).unwrap();
            std::fs::write(folder.path().join("c.json"), &config).unwrap();
            let refused = state.import_folder("refused", folder.path());
            let error = refused.unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{error}");
        }
    }
}

/// The layer of somebody else would become readable in a sandbox.
#[test]
fn a_link_in_a_layout_is_not_followed_out_of_it() {
    let state = state();
    let good = Oci::new(&layers(), Packing::Plain);
    // Of `oci-layout` only the name counts; it is never read.
    for blob in good.files.keys().filter(|name| *name != "oci-layout") {
        let folder = tempfile::tempdir_in(&state.path).unwrap();
        let layout = folder.path().join("layout");
        good.folder(&layout);
        let away = folder.path().join("away");
        // The very contents, so that nothing but the link is wrong.
        std::fs::rename(layout.join(blob), &away).unwrap();
        symlink(&away, layout.join(blob)).unwrap();
        assert!(state.import_folder("refused", &layout).is_err(), "{blob}");
        std::fs::remove_file(layout.join(blob)).unwrap();
        let up = "../".repeat(blob.matches('/').count() + 1);
        symlink(format!("{up}away"), layout.join(blob)).unwrap();
        assert!(state.import_folder("refused", &layout).is_err(), "{blob}");
        std::fs::remove_file(layout.join(blob)).unwrap();
        std::fs::rename(&away, layout.join(blob)).unwrap();
        state.import_folder("good", &layout).unwrap();
    }
}

#[test]
fn documents_have_a_largest_size() {
    let state = state();
    let padding = " ".repeat(4 << 20);
    for large in ["index.json", "manifest.json"] {
        let archive = Tar::new()
            .file("oci-layout", "{}")
            .file(large, format!("{{}}{padding}"))
            .end();
        let error = state.refusal(&archive);
        assert!(error.message.contains("4 MiB"), "{error}");
    }
}

#[test]
fn nonsense_is_refused() {
    let state = state();
    for text in [
        "",
        "{}",
        "[]",
        "null",
        "[{}]",
        "{\"manifests\":{}}",
        "\u{feff}{}",
    ] {
        for file in ["index.json", "manifest.json"] {
            let archive = Tar::new().file("oci-layout", "{}").file(file, text).end();
            state.refusal(&archive);
        }
    }
    let deep = "[".repeat(100_000);
    state.refusal(&Tar::new().file("manifest.json", deep).end());
    let unknown = {
        let mut oci = Oci::default();
        let layer = oci.blob(
            b"x",
            "application/vnd.oci.image.layer.v1.tar+gzip+encrypted",
        );
        let config = configuration(&[vec![]], MACHINE).to_string();
        let config = oci.blob(
            config.as_bytes(),
            "application/vnd.oci.image.config.v1+json",
        );
        let manifest = oci.manifest(&config, &[layer], MACHINE);
        oci.index(&[manifest]);
        oci.archive()
    };
    assert!(state.refusal(&unknown).message.contains("encrypted"));
}

/// An index that holds itself cannot be made, but one in another in another can.
#[test]
fn indexes_within_indexes_come_to_an_end() {
    let state = state();
    let mut oci = Oci::default();
    let mut inner = oci.image(&layers(), Packing::Plain, MACHINE);
    for _ in 0..10 {
        inner = oci.nested(&[inner]);
    }
    oci.index(&[inner]);
    assert!(state.refusal(&oci.archive()).message.contains("too deeply"));
}

#[test]
fn limits_hold_over_all_layers_together() {
    let state = state();
    let limits = UnpackLimits {
        entries: 30,
        total_bytes: 200_000,
        ..UnpackLimits::IMAGE
    };
    let images = open(&state.path.join("state")).unwrap().with_limits(limits);
    let layer = |number: usize, bytes: usize| {
        let mut tar = Tar::new();
        for file in 0..10 {
            tar = tar.file(&format!("{number}-{file}"), vec![b'x'; bytes]);
        }
        tar
    };
    let code = |layers: &[Tar], format| {
        let archive = image(layers);
        let source = glovebox_workspace::image::ImageSource::Archive(Box::new(archive.as_slice()));
        let imported = images.import(source, &name("limited"), format, &mut |_| ());
        imported.map_err(|error| error.code).map(drop)
    };
    let auto = ImageFormat::Auto;
    assert_eq!(
        code(&[layer(1, 10), layer(2, 10), layer(3, 10)], auto),
        Ok(())
    );
    let many = [layer(1, 1), layer(2, 1), layer(3, 1), layer(4, 1)];
    assert_eq!(code(&many, auto), Err(Code::PayloadTooLarge));
    let large = [layer(1, 9500), layer(2, 9500)];
    assert_eq!(code(&large[..1], auto), Ok(()));
    assert_eq!(code(&large, auto), Err(Code::PayloadTooLarge));
}

/// One reader would take the first, another the last.
#[test]
fn a_part_that_is_there_twice_is_refused() {
    let state = state();
    let good = Oci::new(&layers(), Packing::Plain);
    for part in good.files.keys().filter(|name| *name != "oci-layout") {
        let mut tar = Tar::new();
        for (name, contents) in &good.files {
            tar = tar.file(name, contents);
        }
        let error = state.refusal(&tar.file(part, &good.files[part]).end());
        assert!(error.message.contains("more than once"), "{error}");
    }
}

/// Links inside an image make its tree deeper than any path that could be opened.
#[test]
fn a_tree_that_nobody_could_open_is_refused() {
    let state = state();
    let step = format!("{}/", "n".repeat(200)).repeat(15);
    let mut tar = Tar::new();
    for level in 0..3 {
        let above = match level {
            0 => String::new(),
            level => format!("l{}/", level - 1),
        };
        let dir = format!("{above}{step}e");
        tar = tar
            .pax(&[("path", dir.as_bytes())])
            .dir("d")
            .pax(&[("linkpath", dir.as_bytes())])
            .link(&format!("l{level}"), "");
    }
    let error = state.refusal(&tar.end());
    assert!(error.message.contains("too deeply"), "{error}");
}

/// The byte that names the packer's system changes nothing but the digest of the packed layer.
#[test]
fn a_layer_is_packed_as_the_manifest_says() {
    let state = state();
    let mut oci = Oci::new(&layers(), Packing::Gzip);
    let packed = gzip(&layers()[1]);
    let blob = format!("blobs/sha256/{}", sha256(&packed));
    oci.files.get_mut(&blob).unwrap()[9] ^= 1;
    let error = state.refusal(&oci.archive());
    assert!(error.message.contains("not what its name says"), "{error}");
}
