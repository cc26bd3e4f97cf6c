"""sae through the bridge against published values, and against R's answers that are kept."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from pybridge import datasets
from pybridge.engines import sae
from validation.cases.sae import answers, inputs, proximity

pytestmark = pytest.mark.r("sae")

# Poverty rates of the 52 provinces in per cent, from the table of sae's vignette on basic direct
# and indirect estimators (Molina and Marhuenda 2015), where it is rounded; computed with R 4.2.2
# and sae 1.3 by the vignette's own code. Direct estimate, its standard error, post-stratified
# synthetic estimate by education, sample size dependent composite.
POVERTY = """
province,n,direct,standard_error,synthetic,composite
Alava,96,25.5037319001057,4.8466450755720,20.778798004444,24.089305789407
Albacete,173,14.0592421627612,3.0421946526113,22.675624220331,14.304113454978
Alicante,539,20.7850956854507,2.1786894624748,21.269536477334,20.785095685451
Almeria,198,26.7639758164495,4.0903347744421,23.029361839119,26.763975816450
Avila,58,5.5121997900769,2.5554263275326,22.893301308264,10.288352533496
Badajoz,494,21.5538895423592,2.3579060638333,22.359242724976,21.553889542359
Baleares,634,9.9997916622532,1.5365167875401,21.718817816309,10.402402954724
Barcelona,1420,29.8125345717133,1.6185082140791,21.595561396040,29.812534571713
Burgos,168,21.4131501956264,4.4735415676990,22.353305123495,21.413150195626
Caceres,282,27.0313241759359,3.1258191752466,22.232494634588,26.445139762105
Cadiz,398,14.8873506620145,2.1890218120747,22.514478813636,14.887350662015
Castellon,118,17.5981993511929,3.5848818264989,21.911915116670,18.737779289495
Ceuta,235,19.7247964557661,3.3411927561104,22.810063902988,19.724796455766
CiudadReal,250,20.9215344965736,3.2792303674715,23.233023396747,20.921534496574
Cordoba,224,29.9757079787067,3.9340802780788,22.917976243157,29.510446784954
CorunaLa,495,25.3475498657619,2.4677158819739,21.760056433115,25.236244922509
Cuenca,92,26.3340592938387,5.9133852665101,24.836389655282,26.134959277268
Gerona,142,18.3374208775300,3.7101941327503,21.596003755528,18.853988818548
Granada,208,31.7273400355420,4.0439636351537,22.392433306290,30.976185664936
Guadalajara,89,17.9081815365923,4.2340253296876,22.593885040704,18.784562837664
Guipuzcoa,285,23.6905485513720,3.1947786249240,20.768566286503,23.667087214524
Huelva,122,12.5834491686959,3.2025474662837,22.350692372918,13.441997042488
Huesca,115,24.1076058796037,4.8563508834763,23.106161154393,23.988122587732
Jaen,232,31.2941979414053,4.1226714211795,22.939715945198,31.294197941405
Leon,218,18.8015719124940,3.0026340376951,22.931146208506,19.222233193263
Lerida,130,15.5595897447705,3.8724480198286,23.896317359425,15.559589744770
Lugo,173,37.7187217933950,5.6963300435375,23.949222765799,37.582345398258
Madrid,944,18.2182088782530,1.6390180154494,20.282490025384,18.250894760216
Malaga,379,22.9184616971407,2.7356309201344,22.519276169190,22.905509026868
Melilla,180,19.1091191631029,3.4410155886800,22.006971568301,19.430138789301
Murcia,885,17.7031669325003,1.6489102307979,22.500541411228,17.722390403896
Navarra,564,16.1907651211085,1.8420166186124,20.929918631751,16.228655998082
Orense,129,22.7996119324321,4.1994646508785,23.586907746528,22.967653510159
Oviedo,803,26.0640099198188,2.0937791448184,22.009155225780,26.064009919819
Palencia,72,30.1660735012158,7.1797815263110,23.632118294761,29.392156616460
PalmasLas,472,16.6518427311684,2.3072575209438,21.808995783963,16.651842731168
Pontevedra,448,18.5490715258652,2.4188868968825,21.862370441873,18.549071525865
RiojaLa,510,25.8118106216214,2.4591958046197,22.402959657388,25.789237201408
Salamanca,164,16.1045129021957,2.9982431330466,21.932404115233,16.762837888884
Santander,434,34.2444285078540,3.2489370575466,21.565982144569,34.077078718024
Segovia,58,22.2620016186822,5.6399649822679,22.679269968373,22.337611927578
Sevilla,482,20.5030357251379,2.1225268453793,21.741890836052,20.582449055836
Soria,20,2.5412066849668,2.5406514635379,23.103954651119,13.140185349314
Tarragona,134,32.0354382321163,4.9340768971881,22.517614775467,29.512790813590
Tenerife,381,18.4296194822004,2.0545495677938,21.961553276244,19.177678348970
Teruel,72,27.3642386680127,6.7234404453042,22.892046159103,26.701450795416
Toledo,275,12.5533767837041,2.1319913609477,23.144423003656,12.576431300372
Valencia,714,21.3606778405726,2.0705077993897,21.329629861105,21.360544596639
Valladolid,299,19.2923316527755,3.2114842575735,20.980680940980,19.292331652775
Vizcaya,524,21.6944658002680,2.2156445312720,20.441937272977,21.694465800268
Zamora,104,30.0274417220525,6.0253024004970,26.170549278860,30.027441722053
Zaragoza,564,10.0345768998181,1.5691379594181,21.170640908562,10.034576899818
"""
LINE = 6557.143


@pytest.fixture(scope="module")
def poverty():
    persons = datasets.incomedata()
    persons["poor"] = (persons["income"] < LINE).astype(float)
    sizes = datasets.from_r("sae", "sizeprov")[["provlab", "Nd"]]
    strata = datasets.from_r("sae", "sizeprovedu").drop(columns="prov")
    strata.columns = ["provlab", "0", "1", "2", "3"]
    direct = sae.direct(persons, "poor", "provlab", "weight", sizes)
    synthetic = sae.pssynt(persons, "poor", "weight", "educ", strata, domain="provlab")
    composite = sae.ssd(persons, "provlab", "weight", sizes, direct, synthetic)
    return direct, synthetic, composite


def test_poverty_in_all_52_provinces(poverty):
    direct, synthetic, composite = poverty
    table = pd.read_csv(io.StringIO(POVERTY)).set_index("province")
    assert len(table) == 52 and set(direct.domains) == set(table.index)
    for fit, columns in (
        (direct, {"estimate": "direct", "standard_error": "standard_error", "n_labelled": "n"}),
        (synthetic, {"estimate": "synthetic"}),
        (composite, {"estimate": "composite"}),
    ):
        for own, published in columns.items():
            scale = 1 if own == "n_labelled" else 100
            np.testing.assert_allclose(
                scale * getattr(fit, own), table.loc[fit.domains, published], rtol=0, atol=6e-13
            )


def test_poverty_in_the_vignette_as_printed(poverty):
    first = [fit.estimate[0] for fit in poverty]
    assert [f"{100 * value:.5f}" for value in first] == ["25.50373", "20.77880", "24.08931"]


def test_poverty_is_what_is_kept(poverty):
    kept = answers("direct_poor")
    for fit, call, setting, names in (
        (poverty[0], "direct", "weights", {"Direct": "estimate", "SD": "standard_error"}),
        (poverty[1], "pssynt", "education", {"PsSynthetic": "estimate"}),
        (poverty[2], "ssd", "delta 1", {"ssd": "estimate", "CompWeight": "weight"}),
    ):
        for quantity, name in names.items():
            expected = kept.keyed(call, setting, quantity)
            found = getattr(fit, name)
            np.testing.assert_allclose(found, [expected[d] for d in fit.domains], rtol=1e-9)


# Corn in 12 counties of Iowa, segment 33 out: variances of 140 and 147 in Battese, Harter and
# Fuller (1988), by another method of fitting; here REML by sae 1.3 and lme4 1.1.
CORN = """
122.195403434801 126.228017064635 106.663763337660 108.422190382399
144.307169559831 112.158586024111 112.780104057482 122.001966888741
115.343847267330 124.414368379228 106.888266847679 143.031210806515
"""


@pytest.fixture(scope="module")
def corn():
    segments = inputs("unit_segments", text=("county",))
    counties = inputs("unit_counties", text=("county",))
    return segments, counties, counties[["county", "segments"]]


def test_corn_in_twelve_counties(corn):
    segments, counties, sizes = corn
    words = {"data": segments.drop(index=32), "dom": "county", "meanxpop": counties}
    fit = sae.eblupBHF(formula="corn ~ corn_pixels + soybean_pixels", popnsize=sizes, **words)
    np.testing.assert_allclose(fit.estimate, np.array(CORN.split(), dtype=float), rtol=1e-9)
    assert round(fit.model_variance) == 140 and round(fit.error_variance) == 147
    assert fit.model_variance == pytest.approx(140.023889710347, rel=1e-6)
    assert fit.error_variance == pytest.approx(147.268629540441, rel=1e-6)
    assert fit.log_likelihood == pytest.approx(-149.183315434386, rel=1e-12)
    assert fit.status == "converged" and 0 <= fit.exact["shortfall"] < 1e-9
    assert fit.exact["refvar"] == pytest.approx(fit.model_variance, rel=1e-5)


@pytest.mark.parametrize(
    ("function", "setting", "outcome", "words"),
    [
        ("eblupBHF", "corn ML", "corn", {"method": "ML"}),
        ("eblupBHF", "soybeans ML", "soybeans", {"method": "ML", "selectdom": ["10", "1", "5"]}),
        ("pbmseBHF", "corn REML", "corn", {"B": 5, "seed": 3}),
    ],
)
def test_units_are_what_is_kept(corn, function, setting, outcome, words):
    segments, counties, sizes = corn
    if outcome == "corn":
        segments = segments.drop(index=32)
    fit = getattr(sae, function)(
        segments,
        f"{outcome} ~ corn_pixels + soybean_pixels",
        "county",
        counties,
        sizes,
        **words,
    )
    kept = answers("unit_cornsoybean")
    # lme4's optimiser ends where it ends: labels as text come in another order than numbers.
    expected = kept.keyed(function, setting, "estimate")
    np.testing.assert_allclose(fit.estimate, [expected[d] for d in fit.domains], rtol=1e-7)
    (variance,) = kept.of(function, setting, "refvar")
    assert fit.model_variance == pytest.approx(variance, rel=1e-5)
    if function == "pbmseBHF":
        expected = kept.keyed(function, setting, "mse")
        np.testing.assert_allclose(fit.mse, [expected[d] for d in fit.domains], rtol=1e-5)


def test_grapes_as_published():
    # REML: 69.7490, 0.614270, -1210.2004 (sae 1.3); the optimum by a tight PRECISION.
    grapes = datasets.grapes()
    w = pd.DataFrame(datasets.grapes_proximity(), index=grapes.index, columns=grapes.index)
    fit = sae.mseSFH(grapes, "grapehect ~ area + workdays - 1", "var", w)
    assert fit.model_variance == pytest.approx(69.7489865277663, rel=1e-9)
    assert fit.spatial_correlation == pytest.approx(0.614269739162335, rel=1e-9)
    assert fit.log_likelihood == pytest.approx(-1210.20040139, rel=1e-11)
    assert fit.iterations == 6 and fit.status == "converged"
    assert fit.exact["model_variance"] == pytest.approx(69.748956261433, rel=1e-6)
    kept = answers("spatial_grapes")
    for quantity, found in (("estimate", fit.estimate), ("mse", fit.mse)):
        np.testing.assert_allclose(found, kept.of("mseSFH", "REML", quantity), rtol=1e-9)


@pytest.mark.parametrize("function", ["mseSFH", "pbmseSFH", "npbmseSFH"])
def test_a_ring_is_what_is_kept(function):
    table, matrix = inputs("spatial_ring"), proximity("spatial_ring", 25)
    random = {} if function == "mseSFH" else {"B": 5, "seed": 3}
    fit = getattr(sae, function)(table, "y ~ x", "d", matrix, mode="raw", **random)
    kept = answers("spatial_ring")
    np.testing.assert_allclose(fit.estimate, kept.of(function, "REML", "estimate"), rtol=1e-9)
    np.testing.assert_allclose(fit.mse, kept.of(function, "REML", "mse"), rtol=1e-8)
    if random:
        expected = kept.of(function, "REML", "mse_corrected")
        np.testing.assert_allclose(fit.mse_corrected, expected, rtol=1e-7)


@pytest.mark.parametrize("model", ["S", "ST"])
def test_space_and_time_as_published(model):
    published = {
        "S": (6.02532076e-4, 0.623132206, 4.22673443e-4),
        "ST": (4.79482749e-4, 0.646077200, 4.96155375e-4, 0.204724429),
    }
    table = inputs("spatial_spacetime", text=("domain",))
    ids = table["domain"].unique()
    w = pd.DataFrame(proximity("spatial_spacetime", 11), index=ids, columns=ids)
    fit = sae.pbmseSTFH(table, "y ~ x1 + x2", "d", w, time="time", model=model, B=2, seed=3)
    np.testing.assert_allclose(list(fit.parameters.values()), published[model], rtol=1e-8)
    kept = answers("spatial_spacetime")
    expected = kept.of("pbmseSTFH", model, "estimate")
    np.testing.assert_allclose(fit.estimate, expected, rtol=1e-7)
    # Labels are text here, so that sae got the domains, and drew, in another order than the script.
    plain = inputs("spatial_spacetime")
    raw = sae.pbmseSTFH(
        plain, "y ~ x1 + x2", "d", w, D=11, T=3, model=model, B=5, seed=3, mode="raw"
    )
    np.testing.assert_allclose(raw.mse, kept.of("pbmseSTFH", model, "mse"), rtol=1e-8)
    tight = kept.keyed("eblupSTFH", f"{model} tight", "component")
    for name, value in tight.items():
        assert fit.exact[name] == pytest.approx(value, rel=2e-6)
