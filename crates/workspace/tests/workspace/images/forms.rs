//! The same image in every form gives the same files.

use glovebox_workspace::image::{ImageFormat, ImageRecord, ImageSource, Progress};
use serde_json::json;

use crate::archives::tar::Tar;
use crate::images::made::{MACHINE, OTHER, Oci, Packing, docker_save, gzip, layers, sha256};
use crate::images::state::{State, name, state};

fn assert_unpacked(state: &State, record: &ImageRecord) {
    assert_eq!(state.text(record, "etc/old"), "new");
    assert!(!state.has(record, "etc/gone"));
    assert!(!state.has(record, "etc/.wh.gone"));
    // What the layer with the opaque mark brought itself stays, though it came first.
    assert_eq!(state.text(record, "opt/kept"), "kept");
    assert!(!state.has(record, "opt/x"));
    assert_eq!(state.text(record, "bin/same"), "#!shell");
    assert_eq!(state.text(record, "usr/lib/so"), "library");
    let link = std::fs::read_link(state.rootfs(record).join("lib")).unwrap();
    assert_eq!(link.to_str(), Some("/usr/lib"));
    let mode = |path: &str| {
        let meta = std::fs::metadata(state.rootfs(record).join(path)).unwrap();
        std::os::unix::fs::MetadataExt::mode(&meta) & 0o7777
    };
    assert_eq!(mode("bin/sh"), 0o755);
    assert_eq!(mode("."), 0o755);
    assert_eq!(record.skipped, 1);
    // sh, old, kept, so; the hard link is the same file.
    assert_eq!(record.files, 4);
    assert_eq!(record.size_bytes, 7 + 3 + 4 + 7);
}

fn assert_described(record: &ImageRecord) {
    assert_eq!(record.architecture.as_deref(), Some(MACHINE));
    assert_eq!(
        record.created_at.unwrap().to_string(),
        "2026-01-02T03:04:05Z"
    );
    assert_eq!(record.config.env, ["PATH=/bin", "A=b"]);
    assert_eq!(record.config.cmd, ["/bin/sh"]);
    assert_eq!(record.config.user.as_deref(), Some("1000"));
    assert_eq!(record.config.workdir.as_deref(), Some("/work"));
}

#[test]
fn every_form_gives_the_same_image() {
    let state = state();
    let plain = Oci::new(&layers(), Packing::Plain);
    let folder = state.path.join("layout");
    plain.folder(&folder);
    let records = [
        state.import("folder", &plain.archive()).unwrap(),
        state.import_folder("tar", &folder).unwrap(),
        state
            .import("gzip", &Oci::new(&layers(), Packing::Gzip).archive())
            .unwrap(),
        state
            .import("zstd", &Oci::new(&layers(), Packing::Zstd).archive())
            .unwrap(),
        state.import("packed", &gzip(&plain.archive())).unwrap(),
        state.import("docker", &docker_save(&layers())).unwrap(),
    ];
    for record in &records {
        assert_described(record);
        assert_unpacked(&state, record);
        assert_eq!(record.digest, records[0].digest, "{}", record.name);
    }
    assert_eq!(state.kept(), 1);
    assert_eq!(state.images.ls().unwrap().len(), records.len());
}

#[test]
fn the_newer_form_of_docker_save_is_both_and_one() {
    let state = state();
    let mut both = Oci::new(&layers(), Packing::Plain);
    let config = crate::images::made::configuration(&layers(), MACHINE).to_string();
    let blob = |bytes: &[u8]| format!("blobs/sha256/{}", sha256(bytes));
    let list = json!([{
        "Config": blob(config.as_bytes()),
        "RepoTags": null,
        "Layers": layers().iter().map(|layer| blob(layer)).collect::<Vec<_>>(),
    }]);
    both.files
        .insert("manifest.json".to_owned(), list.to_string().into_bytes());
    let archive = both.archive();
    let records = [
        ImageFormat::Auto,
        ImageFormat::OciLayout,
        ImageFormat::DockerSave,
    ]
    .map(|format| state.import_as("made", &archive, format).unwrap());
    for record in &records {
        assert_unpacked(&state, record);
        assert_eq!(record.digest, records[0].digest);
    }
}

#[test]
fn identical_layers_may_be_links_to_one_of_them() {
    let state = state();
    let layer = Tar::new().file("f", "text").end();
    let config = crate::images::made::configuration(&[layer.clone(), layer.clone()], MACHINE);
    let (a, b) = ("a".repeat(64), "b".repeat(64));
    let list = json!([{
        "Config": "c.json",
        "Layers": [format!("{a}/layer.tar"), format!("{b}/layer.tar")],
    }]);
    let archive = Tar::new()
        .file(&format!("{a}/layer.tar"), &layer)
        .pax(&[("linkpath", format!("../{a}/layer.tar").as_bytes())])
        .link(&format!("{b}/layer.tar"), "")
        .file("c.json", config.to_string())
        .file("manifest.json", list.to_string())
        .end();
    let record = state.import("linked", &archive).unwrap();
    assert_eq!(state.text(&record, "f"), "text");
}

#[test]
fn the_archive_of_a_root_directory_is_an_image() {
    let state = state();
    let root = Tar::new()
        .dir("./")
        .dir("./bin/")
        .mode(b'0', "./bin/sh", 0o755, "#!")
        .mode(b'5', "./locked/", 0, "")
        .file("./locked/f", "inside")
        .link("./sh", "/bin/sh");
    let root = root.end();
    let mut seen = Vec::new();
    let source = ImageSource::Archive(Box::new(root.as_slice()));
    let imported = state
        .images
        .import(source, &name("root"), ImageFormat::Auto, &mut |step| {
            seen.push(step)
        });
    let record = imported.unwrap();
    // Unpacked as it streams, without a copy.
    assert_eq!(seen, [Progress::Keeping]);
    assert_eq!(
        record.digest.to_string(),
        format!("sha256:{}", sha256(&root))
    );
    assert_eq!(record.architecture, None);
    assert_eq!(state.text(&record, "locked/f"), "inside");
    let packed = state.import("packed", &gzip(&root)).unwrap();
    assert_eq!(packed.digest, record.digest);
}

#[test]
fn a_root_directory_that_begins_like_an_image_is_still_one() {
    let state = state();
    let root = Tar::new()
        .dir("blobs/")
        .file("blobs/f", "x")
        .file("bin/sh", "")
        .end();
    let record = state.import("root", &root).unwrap();
    assert_eq!(state.text(&record, "blobs/f"), "x");
    assert_eq!(
        record.digest.to_string(),
        format!("sha256:{}", sha256(&root))
    );
    let named = state
        .import_as("named", &root, ImageFormat::Rootfs)
        .unwrap();
    assert_eq!(named.digest, record.digest);
}

#[test]
fn an_index_for_many_machines_gives_this_ones() {
    let state = state();
    let mut oci = Oci::default();
    let theirs = [Tar::new().file("theirs", "").end()];
    let theirs = oci.image(&theirs, Packing::Gzip, OTHER);
    let ours = oci.image(&layers(), Packing::Gzip, MACHINE);
    // Provenance is listed as an image for an unknown machine.
    let mut unknown = oci.blob(b"{}", "application/vnd.oci.image.manifest.v1+json");
    unknown["platform"] = json!({ "architecture": "unknown", "os": "unknown" });
    let inner = oci.nested(&[theirs.clone(), ours, unknown]);
    // The same one twice, under two names.
    oci.index(&[inner.clone(), inner]);
    let record = state.import("many", &oci.archive()).unwrap();
    assert_unpacked(&state, &record);
    oci.index(&[theirs]);
    let error = state.refusal(&oci.archive());
    assert!(error.message.contains(&format!("linux/{OTHER}")), "{error}");
}

#[test]
fn an_image_for_another_machine_is_noticed_without_an_index_too() {
    let state = state();
    let mut oci = Oci::default();
    let mut theirs = oci.image(&layers(), Packing::Plain, OTHER);
    theirs.as_object_mut().unwrap().remove("platform");
    oci.index(&[theirs]);
    let error = state.refusal(&oci.archive());
    assert!(error.message.contains(&format!("linux/{OTHER}")), "{error}");
}

#[test]
fn more_than_one_image_is_a_question() {
    let state = state();
    let mut oci = Oci::default();
    let one = oci.image(&layers(), Packing::Plain, MACHINE);
    let two = oci.image(&layers()[..1], Packing::Plain, MACHINE);
    oci.index(&[one, two]);
    let error = state.refusal(&oci.archive());
    assert!(error.message.contains("2 images"), "{error}");
}
