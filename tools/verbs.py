"""Does a function's name begin with a verb that says what happens?"""

from __future__ import annotations

# Imperatives of programming; a participle (`fitted`, `told`) or a noun (`_suffix`) does not count.
VERBS = frozenset(
    """
    abort accept accumulate acquire add adjust advance advise align allocate allow announce answer append apply
    approve approximate are arrange as ask assemble assert assign assume attach attempt await balance begin bind
    blend block broadcast build cache calculate call can cancel cast catch change check choose chunk claim clamp
    classify clean clear click clip clone close collate collect combine commit compare compile complete compose
    compress compute concat concatenate configure confirm connect consume contain continue convert copy correct
    count cover create crop cut deal debug decide declare decode decompress deduplicate deflate delete deliver
    demand denote derive describe deserialize detach detect determine diagnose discard discover dispatch display
    distribute divide do download draw drop dump emit enable encode end enforce ensure enter enumerate equalize
    escape estimate evaluate evict examine exclude execute exit expand expect explain export expose extend
    extract fail fall feed fetch fill filter finalize find finish fit flatten flip flush fold follow forget fork
    format forward free freeze fuse gather generate get give grant group grow guard guess halve handle has hash
    hide hint hold identify ignore import include increase index infer inflate inherit initialize inject insert
    inspect install interleave interpolate intersect introduce invert is iterate join judge jump keep kill label
    launch lay learn leave lend limit link list load locate lock log look lookup lower make map mark mask match
    materialize measure merge mirror mix modify mount move multiply must name narrow need normalize note notice
    notify observe obtain offer omit open optimize order overlap overwrite own pack pad parse partition pass
    pause permute pick pin place plan plot point poll pop populate post prefer prepare prepend preserve prevent
    print probe process produce profile project propose protect provide prune publish pull push put query queue
    quote raise rank reach read rebuild receive recognise recognize recommend record recover redirect reduce
    refer refill refine refresh refuse register reject release reload remap remember remove rename render repair
    repeat replace report request require rescale reserve reset reshape resize resolve restart restore resume
    retry return reuse reverse review rewrite roll rotate round route run sample save scale scan schedule score
    scroll search see seed seek select send separate serialize serve set share shift show shrink shuffle shut
    sign simplify simulate skip sleep slice smooth snap solve sort spawn specify spell split spread squeeze
    stack stage start state stay step stop store stream stretch strip style submit subtract suggest sum
    summarise summarize supply suppress swap switch sync synchronize take tell terminate test tile toggle touch
    trace track train transfer transform translate traverse trim truncate try tune turn unfold unify unlink
    unlock unpack update upload use validate verify visit wait walk want warm warn watch weigh widen wrap write
    yield zip zoom
    """.split()  # noqa: SIM905 - a list of 400 quoted words hides them
)


def begins_with_verb(name: str) -> bool:
    return name.lstrip("_").split("_")[0] in VERBS
