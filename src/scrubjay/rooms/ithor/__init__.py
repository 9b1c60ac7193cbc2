"""Rooms of ours from AI2-THOR's 120 iTHOR rooms: their objects' names, places and sizes, drawn by our catalog."""

from scrubjay.rooms.ithor.layout import floor_height
from scrubjay.rooms.ithor.room import ithor_room
from scrubjay.rooms.ithor.table import FLOOR_PLANS, ITHOR_SCENES, Record, floor_plan, objects, room_type

__all__ = ["FLOOR_PLANS", "ITHOR_SCENES", "Record", "floor_height", "floor_plan", "ithor_room", "objects", "room_type"]
