//! Recognises secrets by their appearance: prefixes of well-known issuers, and random text.

/// Unambiguous prefixes.
const PREFIXES: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glrt-",
    "glsa_",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxr-",
    "xoxs-",
    "xoxe-",
    "xoxe.",
    "xapp-",
    "sk-ant-",
    "sk-proj-",
    "sk-or-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "pk_live_",
    "pk_test_",
    "whsec_",
    "AIza",
    "ya29.",
    "hvs.",
    "hvb.",
    "dop_v1_",
    "doo_v1_",
    "shpat_",
    "shpss_",
    "shpca_",
    "lin_api_",
    "tvly-",
    "gsk_",
    "xai-",
    "pplx-",
    "nvapi-",
    "ntn_",
    "figd_",
    "sbp_",
    "PMAK-",
    "dckr_pat_",
    "CFPAT-",
    "sntrys_",
    "sntryu_",
    "sq0atp-",
    "pypi-",
    "rubygems_",
    "ATATT",
    "NRAK-",
    "xkeysib-",
    "AGE-SECRET-KEY-",
    "SG.",
    "phx_",
    "phc_",
    "apify_api_",
    "lsv2_",
];

/// Prefixes that other words share: the remainder must also look like a key.
const AMBIGUOUS_PREFIXES: &[&str] = &[
    "sk-", "sk_", "pk-", "hf_", "npm_", "key-", "fc-", "r8_", "pat-", "secret_", "AKIA", "ASIA",
    "eyJ", "dapi", "re_", "cio_",
];

/// Minimum length of a key after its prefix.
const SHORTEST_KEY: usize = 7;

/// Whether a run of letters, digits and `_-.` starts like a key of a well-known issuer.
pub(super) fn begins_like_a_key(run: &str) -> bool {
    let rest_of = |prefix: &&str| {
        run.strip_prefix(*prefix)
            .filter(|rest| rest.len() >= SHORTEST_KEY)
    };
    if run.len() <= SHORTEST_KEY {
        return false;
    }
    let ambiguous = AMBIGUOUS_PREFIXES.iter().find_map(rest_of);
    if let Some(rest) = ambiguous {
        let has_digit = rest.bytes().any(|byte| byte.is_ascii_digit());
        let is_one_word = !rest.contains(['-', '_']);
        if has_digit || (is_one_word && rest.len() >= 20) {
            return true;
        }
    }
    PREFIXES.iter().any(|prefix| rest_of(prefix).is_some())
}

/// Minimum length at which a mix of characters distinguishes a token from a word.
const SHORTEST_TOKEN: usize = 16;

/// Longer texts are data rather than tokens, and must be visible for approval.
const LONGEST_TOKEN: usize = 1024;

/// Minimum number of distinct characters in random text.
const FEWEST_CHARACTERS: u32 = 6;

/// Whether a text has enough distinct characters, unlike a row of `x`.
fn is_varied(text: &str) -> bool {
    let mut seen = 0_u128;
    for byte in text.bytes() {
        seen |= 1 << (byte & 0x7F);
    }
    seen.count_ones() >= FEWEST_CHARACTERS
}

/// Whether a path segment, a query value or a whole argument looks like a token: a UUID, long hexadecimal digits, or an
/// unusual mix of letters and digits. Words, versions, dates and slugs do not.
pub(super) fn is_token(text: &str) -> bool {
    let may_be = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~+=:%".contains(&byte);
    let is_of_length = (SHORTEST_TOKEN..=LONGEST_TOKEN).contains(&text.len());
    if !is_of_length || !text.bytes().all(may_be) || !is_varied(text) {
        return false;
    }
    let separates = |character: char| !character.is_ascii_alphanumeric();
    let bare: String = text.chars().filter(|each| !separates(*each)).collect();
    is_uuid(text)
        || text.split(separates).any(is_random)
        || (bare.len() >= 16 && is_mixed(&bare, 35))
}

pub(super) fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12])
        && text
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Whether a text consists of hexadecimal digits, like a commit hash.
pub(super) fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a run of letters and digits looks random.
fn is_random(run: &str) -> bool {
    if run.len() < SHORTEST_TOKEN {
        return false;
    }
    let letters = run.bytes().filter(u8::is_ascii_alphabetic).count();
    let digits = run.len() - letters;
    if is_hex(run) && letters >= 2 && digits >= 2 {
        return true;
    }
    is_mixed(run, 25) || (run.len() >= 24 && digits == 0 && has_unspeakable_part(run))
}

/// Whether the character class changes often: in at least `percent` per cent of positions, and at least four times. A
/// capital at the start of a word does not count, so `getUserById` has three changes.
fn is_mixed(run: &str, percent: usize) -> bool {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    let pairs = run.bytes().zip(run.bytes().skip(1));
    let changes = pairs
        .filter(|(one, next)| match (kind(*one), kind(*next)) {
            (1, 2) => false,
            (one, next) => one != next,
        })
        .count();
    changes >= 4 && changes * 100 >= run.len() * percent
}

/// Seven consonants in a row, which almost no word has.
fn has_unspeakable_part(run: &str) -> bool {
    let is_vowel = |byte: u8| b"aeiouy".contains(&byte.to_ascii_lowercase());
    run.as_bytes()
        .split(|byte| is_vowel(*byte))
        .any(|consonants| consonants.len() >= 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_beginnings() {
        for key in [
            "sk-1234567890",
            "ghp_abcdefghijkl",
            "sk_live_51H8abcdef",
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
            "xoxb-1-2-abcdefg",
            "npm_a1b2c3d4e5",
            "hf_aBcDeFgHiJkLmNoPqRsTuV",
        ] {
            assert!(begins_like_a_key(key), "{key}");
        }
        for word in [
            "sk-learn-server",
            "npm_config_registry",
            "sk-",
            "eyJ",
            "hf_hub",
            "key-value-store",
            "secret_manager",
            "re_export_all",
            "pk-fields-only",
        ] {
            assert!(!begins_like_a_key(word), "{word}");
        }
    }

    #[test]
    fn tokens_are_told_from_names() {
        for token in [
            "5f1e8a9b3c7d2e4f6a8b0c1d",
            "550e8400-e29b-41d4-a716-446655440000",
            "NDk2ZTg4OTItYjQ5Yy00",
            "aB3dE5gH7jK9mN1pQ3rS",
            "k3j9x0q8z7w6v5u4",
            "dGhpc2lzYXNlY3JldHRva2Vu",
            "aB3-x9_ZkQ2-7Lm_p0RtY",
            "qzxkvjwpbtnmlrhdfgscyaoe",
        ] {
            assert!(is_token(token), "{token}");
        }
        for name in [
            "mcp",
            "v1",
            "api",
            "index.html",
            "modelcontextprotocol",
            "server-everything-v2.1.0",
            "gpt-4o-mini-2024-07-18",
            "claude-3-5-sonnet-20241022",
            "2025-06-18",
            "20250101T120000Z",
            "getUserProfileSettingsById",
            "repos",
            "1234567890123456789012",
            "well-known",
            "oauth-protected-resource",
            "streamable_http_2025",
            "Donaudampfschifffahrtsgesellschaft",
            "chat-completions-beta-2",
            "",
            "openid-configuration",
            "1.2.3-4.el7.x86_64",
            "chrome-v120.0.6099.109-linux64",
        ] {
            assert!(!is_token(name), "{name}");
        }
    }
}
