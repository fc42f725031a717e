"""Personal data in texts: numbers with their checksums, addresses of mail and machines, passwords in addresses.

Only data with a fixed format are found. Names, streets and dates of birth have none, so a text without findings may
still hold personal data.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from evaluand.evaluation.local_provider import LocalProvider, longest
from evaluand.evaluation.provider import Judgement, text_of

_SHOWN: Final = 5  # findings in a reason
_SEEN: Final = 2  # characters of a value that are shown, of eight or more


@dataclass(frozen=True)
class PersonalData(LocalProvider):
    """Judges whether texts hold personal data.

    Example:
        >>> PersonalData().personal_data("Write to jane.roe@example.org.").reason
        '1 email: at 9–29 (…rg)'
    """

    kind = "personal_data"

    @longest(1_000_000, share=True, lower_is_better=True)
    def personal_data(self, text: str) -> Judgement:
        """1 if a text holds personal data with a fixed format, else 0; each finding has its kind and place.

        The reason and its details show no value: of eight or more characters only the last two, of fewer none.

        | kind | conditions |
        |---|---|
        | `url_credentials` | `scheme://user:password@host` |
        | `email` | an address with a domain of two parts or more |
        | `iban` | the length of its country, and ISO 7064 mod 97 |
        | `credit_card` | 13 to 19 digits, a prefix that is issued, and Luhn's checksum |
        | `us_ssn`, `us_itin` | 3-2-4 digits with separators, in the ranges that are issued |
        | `de_tax_id` | 11 digits of which one occurs two or three times, and ISO 7064 mod 11, 10 |
        | `uk_nino` | two letters that are issued, six digits, A to D |
        | `es_dni` | 8 digits, or X, Y, Z and 7, and the letter of mod 23 |
        | `fr_nir` | 13 digits in the form of the number, and the key of mod 97 |
        | `br_cpf` | 3.3.3-2 digits and both check digits |
        | `ip` | IPv4 or IPv6, but not the address of the machine itself |
        | `phone` | + and 8 to 15 digits, or a national form with separators |
        """
        found = list(_find(text_of("text", text)))
        if not found:
            return Judgement(0.0, {"reason": "nothing that has a form was found", "findings": []})
        counts = ", ".join(f"{count} {kind}" for kind, count in Counter(one.kind for one in found).items())
        shown = ", ".join(f"at {one.start}–{one.end} ({one.masked})" for one in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" * (len(found) > _SHOWN)
        return Judgement(1.0, {"reason": f"{counts}: {shown}{more}", "findings": [one._asdict() for one in found]})

    @longest(1_000_000, share=True)
    def no_personal_data(self, text: str) -> Judgement:
        """1 − `personal_data`."""
        value, meta = self.personal_data(text)
        return Judgement(None if value is None else 1 - value, meta)


class _Finding(NamedTuple):
    kind: str
    start: int
    end: int
    masked: str


def _find(text: str) -> Iterator[_Finding]:
    """The findings in the order of their places; of two that overlap, the kind listed first wins."""
    taken, findings = bytearray(len(text)), []
    for kind, pattern, check in _KINDS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(taken[start:end]) or not check(match[0]):
                continue
            taken[start:end] = b"\1" * (end - start)
            findings.append(_Finding(kind, start, end, _mask(match[0])))
    yield from sorted(findings, key=lambda one: one.start)


def _mask(value: str) -> str:
    return f"…{value[-_SEEN:]}" if len(value) >= 4 * _SEEN else "…"


def _digits(text: str) -> list[int]:
    return [int(letter) for letter in text if letter.isdigit()]


def _luhn(digits: list[int]) -> bool:
    """H. P. Luhn's checksum, ISO/IEC 7812-1, annex B."""
    doubled = (digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2])
    return (sum(digits[::-2]) + sum(doubled)) % 10 == 0


def _is_card(text: str) -> bool:
    digits = _digits(text)
    return _ISSUED.match("".join(map(str, digits))) is not None and _luhn(digits)


def _is_iban(text: str) -> bool:
    written = re.sub(r"[ -]", "", text)
    if sum(map(str.isdigit, written)) <= len(written) / 2:
        return False  # words may have the same format
    return int("".join(str(int(letter, 36)) for letter in written[4:] + written[:4])) % 97 == 1


def _is_ssn(text: str) -> bool:
    area, group, serial = re.split(r"[- ]", text)
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def _is_itin(text: str) -> bool:
    area, group, _ = re.split(r"[- ]", text)
    return area >= "900" and group in _ITIN_GROUPS


def _is_german(text: str) -> bool:
    digits = _digits(text)
    times = sorted(Counter(digits[:10]).values())[-2:]
    if len(digits) != 11 or digits[0] == 0 or times not in ([1, 2], [1, 3]):
        return False
    product = 10
    for digit in digits[:10]:
        total = (digit + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == digits[10]


def _is_british(text: str) -> bool:
    return text[:2].upper() not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")


def _is_spanish(text: str) -> bool:
    written = re.sub(r"[ .-]", "", text).upper()
    number = written[:-1].translate(str.maketrans("XYZ", "012"))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == written[-1]


def _is_french(text: str) -> bool:
    written = re.sub(r"\D", "", text.upper().replace("2A", "19").replace("2B", "18"))
    return 97 - int(written[:13]) % 97 == int(written[13:])


def _is_brazilian(text: str) -> bool:
    digits = _digits(text)
    if len(set(digits)) == 1:
        return False
    for length in (9, 10):
        rest = sum(digit * weight for digit, weight in zip(digits, range(length + 1, 1, -1), strict=False)) * 10 % 11
        if rest % 10 != digits[length]:
            return False
    return True


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _is_ipv6(text: str) -> bool:
    return any(map(str.isdigit, text)) and _is_address(text)  # names in code may contain two colons


def _is_phone(text: str) -> bool:
    return 8 <= len(_digits(text)) <= 15  # ITU-T E.164


def _is_national(text: str) -> bool:
    return _is_phone(text) and not _DATE.fullmatch(text)


def _any(text: str) -> bool:
    return True


_ISSUED: Final = re.compile(
    r"(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11,16}|35(?:2[89]|[3-8]\d)\d{12,15}|6(?:011|4[4-9]\d|5\d\d)\d{12,15}|62\d{14,17}"
    r"|(?:50|5[6-9]|6[37])\d{10,17})\Z"
)
_ITIN_GROUPS: Final = frozenset(f"{n:02}" for n in (*range(50, 66), *range(70, 89), 90, 91, 92, *range(94, 100)))
_DATE: Final = re.compile(r"\d\d[ /-]\d\d[ /-]\d{4}|\d{3}-\d\d-\d{4}")
_IBANS: Final = """
    15 NO; 16 BE; 18 DK FI FK FO GL NL SD; 19 MK SI; 20 AT BA EE KZ LT LU MN XK; 21 CH HR LI LV;
    22 BG BH CR DE GB GE IE ME RS VA; 23 AE GI IL IQ OM SO TL; 24 AD CZ ES MD PK RO SA SE SK TN VG; 25 LY PT ST;
    26 IS TR; 27 BI DJ FR GR IT MC MR SM; 28 AL AZ BY CY DO GT HU LB NI PL SV; 29 BR EG PS QA UA; 30 JO KW MU YE;
    31 MT SC; 32 LC; 33 RU
"""
_IBAN: Final = "|".join(
    rf"(?:{'|'.join(codes)})\d\d(?:[ -]?[A-Z0-9]){{{int(length) - 4}}}(?![A-Z0-9])"
    for length, *codes in (entry.split() for entry in _IBANS.split(";"))
)
_Check = Callable[[str], bool]
_KINDS: Final[tuple[tuple[str, re.Pattern[str], _Check], ...]] = tuple(
    (
        kind,
        re.compile(rf"(?<![\w.+-]){pattern}" if kind == "email" else rf"(?<![\w+]){pattern}", re.ASCII | flags),
        check,
    )
    for kind, pattern, flags, check in (
        (
            "url_credentials",
            r"[a-z][a-z0-9+.-]{1,20}://[^\s/?#@:]{1,256}:[^\s/?#@]{1,256}@[\w.-]+",
            re.IGNORECASE,
            _any,
        ),
        (
            "email",
            r"[\w.+-]{1,64}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}[a-z]{2,24}(?![\w-])",
            re.IGNORECASE,
            _any,
        ),
        ("iban", rf"(?:{_IBAN})", re.IGNORECASE, _is_iban),
        ("fr_nir", r"[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d\d(?!\w)", 0, _is_french),
        ("credit_card", r"\d{4}([ -]?)(?:(?:\d{4}\1){2}\d{4}|\d{6}\1\d{4,5})(?!\w)", 0, _is_card),
        ("credit_card", r"(?:\d{13,19}|(?:\d{4}[ -]){4}\d{3})(?!\w)", 0, _is_card),
        ("us_ssn", r"\d{3}([- ])\d\d\1\d{4}(?![\w-])", 0, _is_ssn),
        ("us_itin", r"9\d\d([- ])\d\d\1\d{4}(?![\w-])", 0, _is_itin),
        ("br_cpf", r"\d{3}\.\d{3}\.\d{3}-\d\d(?!\w)", 0, _is_brazilian),
        ("de_tax_id", r"[1-9]\d(?: ?\d{3}){3}(?!\w)", 0, _is_german),
        ("uk_nino", r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D](?!\w)", re.IGNORECASE, _is_british),
        ("es_dni", r"(?:\d{8}|[XYZ][- ]?\d{7})[- ]?[A-Z](?!\w)", re.IGNORECASE, _is_spanish),
        ("ip", r"(?<![\d.])(?<!v)\d{1,3}(?:\.\d{1,3}){3}(?!\.?\w)", 0, _is_address),
        ("ip", r"(?<!:)(?=[0-9a-f]*:)(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])", re.IGNORECASE, _is_ipv6),
        ("phone", r"(?<![.,])\+\d(?:[ ().-]{0,2}\d){7,14}(?!\w)", 0, _is_phone),
        ("phone", r"(?<![\d.,-])(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{4}(?![\w-])", 0, _is_phone),
        (
            "phone",
            r"(?<![\d.,/-])(?<!\d )(?:\(0\d{1,4}\)|0\d{1,4}) ?[ /-] ?\d{2,}(?:[ -]?\d{2,}){0,4}(?![\w.,/-]\d|\w)",
            0,
            _is_national,
        ),
    )
)
