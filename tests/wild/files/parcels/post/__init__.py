from . import fields as FIELDS
from .parcel import Parcel as Parcel
