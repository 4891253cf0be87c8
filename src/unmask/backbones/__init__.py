"""The backbones: one table. A further one is a file beside these and a line here (docs/extending.md says how)."""

from unmask.backbones import dream, llada
from unmask.backbones.families import Family

FAMILIES: dict[str, Family] = {family.name: family for family in (llada.FAMILY, dream.FAMILY)}
