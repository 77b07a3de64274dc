//! Revisions, eras and features.

use switchboard_protocol::{Era, Feature, Revision, revision::UnknownRevision};

#[test]
fn revisions_read_as_they_are_written() {
    for revision in Revision::ALL {
        assert_eq!(revision.to_string().parse(), Ok(revision));
        let json = serde_json::to_string(&revision).unwrap();
        assert_eq!(json, format!("\"{revision}\""));
        assert_eq!(serde_json::from_str::<Revision>(&json).unwrap(), revision);
    }
    for text in ["", "2025-06-17", "2026-07-28 ", "draft", "DRAFT-2026-v1"] {
        assert_eq!(
            text.parse::<Revision>(),
            Err(UnknownRevision(text.to_owned()))
        );
    }
    assert!(Revision::ALL.is_sorted());
    assert_eq!(Revision::ALL.last(), Some(&Revision::LATEST));
}

#[test]
fn only_the_last_revision_is_stateless() {
    let eras: Vec<Era> = Revision::ALL.into_iter().map(Revision::era).collect();
    let (stateful, stateless) = (Era::Stateful, Era::Stateless);
    assert_eq!(eras, [stateful, stateful, stateful, stateful, stateless]);
}

#[test]
fn features_come_and_go() {
    // One column per revision, oldest first.
    for (feature, expected) in [
        (Feature::Handshake, "11110"),
        (Feature::Ping, "11110"),
        (Feature::ServerRequests, "11110"),
        (Feature::ResourceSubscribe, "11110"),
        (Feature::SetLogLevel, "11110"),
        (Feature::Batches, "01000"),
        (Feature::StreamableHttp, "01111"),
        (Feature::HttpSessions, "01110"),
        (Feature::GetStream, "01110"),
        (Feature::StreamResumption, "01110"),
        (Feature::ToolAnnotations, "01111"),
        (Feature::AudioContent, "01111"),
        (Feature::ProgressMessage, "01111"),
        (Feature::VersionHeader, "00111"),
        (Feature::StructuredOutput, "00111"),
        (Feature::ResourceLinks, "00111"),
        (Feature::Titles, "00111"),
        (Feature::Elicitation, "00111"),
        (Feature::UrlElicitation, "00011"),
        (Feature::Icons, "00011"),
        (Feature::SamplingTools, "00011"),
        (Feature::CoreTasks, "00010"),
        (Feature::RequestMeta, "00001"),
        (Feature::Discover, "00001"),
        (Feature::Subscriptions, "00001"),
        (Feature::ResultType, "00001"),
        (Feature::CacheHints, "00001"),
        (Feature::StandardHeaders, "00001"),
        (Feature::Extensions, "00001"),
        (Feature::AnyStructuredContent, "00001"),
    ] {
        let found: String = Revision::ALL
            .into_iter()
            .map(|revision| if revision.has(feature) { '1' } else { '0' })
            .collect();
        assert_eq!(found, expected, "{feature:?}");
    }
}
