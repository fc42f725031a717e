"""The languages that ISO 639-1 has codes for, by what they are called in English."""

from typing import Final

_EUROPE: Final = """
bg Bulgarian, br Breton, bs Bosnian, ca Catalan, co Corsican, cs Czech, cy Welsh, da Danish, de German, el Greek,
en English, es Spanish, et Estonian, eu Basque, fi Finnish, fo Faroese, fr French, fy Western Frisian, ga Irish,
gd Scottish Gaelic, gl Galician, gv Manx, hr Croatian, hu Hungarian, is Icelandic, it Italian, kl Greenlandic,
kw Cornish, lb Luxembourgish, li Limburgish, lt Lithuanian, lv Latvian, mk Macedonian, mt Maltese,
nb Norwegian Bokmål, nl Dutch, nn Norwegian Nynorsk, no Norwegian, oc Occitan, pl Polish, pt Portuguese, rm Romansh,
ro Romanian, sc Sardinian, se Northern Sami, sk Slovak, sl Slovenian, sq Albanian, sr Serbian, sv Swedish,
uk Ukrainian, wa Walloon, be Belarusian, ru Russian, yi Yiddish, an Aragonese
"""
_ASIA: Final = """
ab Abkhazian, ar Arabic, as Assamese, av Avar, az Azerbaijani, ba Bashkir, bn Bengali, bo Tibetan, ce Chechen,
cv Chuvash, dv Dhivehi, dz Dzongkha, fa Persian, gu Gujarati, he Hebrew, hi Hindi, hy Armenian, id Indonesian,
ii Sichuan Yi, ja Japanese, jv Javanese, ka Georgian, kk Kazakh, km Khmer, kn Kannada, ko Korean, ks Kashmiri,
ku Kurdish, kv Komi, ky Kyrgyz, lo Lao, ml Malayalam, mn Mongolian, mr Marathi, ms Malay, my Burmese, ne Nepali,
or Odia, os Ossetian, pa Punjabi, ps Pashto, sd Sindhi, si Sinhala, su Sundanese, ta Tamil, te Telugu, tg Tajik,
th Thai, tk Turkmen, tl Tagalog, tr Turkish, tt Tatar, ug Uyghur, ur Urdu, uz Uzbek, vi Vietnamese, za Zhuang,
zh Chinese
"""
_AFRICA_AND_FURTHER: Final = """
aa Afar, af Afrikaans, ak Akan, am Amharic, ay Aymara, bi Bislama, bm Bambara, ch Chamorro, cr Cree, ee Ewe, ff Fula,
fj Fijian, gn Guarani, ha Hausa, ho Hiri Motu, ht Haitian Creole, hz Herero, ig Igbo, ik Inupiaq, iu Inuktitut,
kg Kongo, ki Kikuyu, kj Kwanyama, kr Kanuri, lg Ganda, ln Lingala, lu Luba-Katanga, mg Malagasy, mh Marshallese,
mi Maori, na Nauru, nd Northern Ndebele, ng Ndonga, nr Southern Ndebele, nv Navajo, ny Chichewa, oj Ojibwe, om Oromo,
qu Quechua, rn Rundi, rw Kinyarwanda, sg Sango, sm Samoan, sn Shona, so Somali, ss Swati, st Southern Sotho,
sw Swahili, ti Tigrinya, tn Tswana, to Tongan, ts Tsonga, tw Twi, ty Tahitian, ve Venda, wo Wolof, xh Xhosa,
yo Yoruba, zu Zulu
"""
_OLD_AND_MADE: Final = """
ae Avestan, cu Church Slavonic, eo Esperanto, ia Interlingua, ie Interlingue, io Ido, la Latin, pi Pali, sa Sanskrit,
vo Volapük
"""

NAMES: Final[dict[str, str]] = {
    code: name
    for part in (_EUROPE, _ASIA, _AFRICA_AND_FURTHER, _OLD_AND_MADE)
    for code, name in (entry.split(maxsplit=1) for entry in part.split(","))
}
