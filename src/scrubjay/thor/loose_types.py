"""Object types that AI2-THOR lets move, with their masses in kilograms: medians over its 120 rooms.

Facts from the Apache-2.0 `procthor` package's table of those rooms' objects.
"""

from __future__ import annotations

PICKUPABLE = {
    "AlarmClock": 0.8, "AluminumFoil": 0.9, "Apple": 0.2, "BaseballBat": 0.9, "BasketBall": 0.6, "Book": 0.5,
    "Boots": 0.7, "Bottle": 0.2, "Bowl": 0.47, "Box": 0.3, "Bread": 0.7, "ButterKnife": 0.08, "CD": 0.015,
    "Candle": 0.2, "CellPhone": 0.16, "Cloth": 0.045, "CreditCard": 0.006, "Cup": 0.4, "DishSponge": 0.03,
    "Dumbbell": 4.54, "Egg": 0.055, "Footstool": 4.0, "Fork": 0.04, "HandTowel": 0.08, "Kettle": 0.8,
    "KeyChain": 0.075, "Knife": 0.18, "Ladle": 0.08, "Laptop": 2.3, "Lettuce": 0.47, "Mug": 1.0, "Newspaper": 0.2,
    "Pan": 0.67, "PaperTowelRoll": 0.22, "Pen": 0.006, "Pencil": 0.006, "PepperShaker": 0.14, "Pillow": 0.7,
    "Plate": 0.62, "Plunger": 1.0, "Pot": 0.57, "Potato": 0.18, "RemoteControl": 0.15, "SaltShaker": 0.4,
    "ScrubBrush": 0.19, "SoapBar": 0.11, "SoapBottle": 0.4, "Spatula": 0.065, "Spoon": 0.04, "SprayBottle": 0.11,
    "Statue": 1.0, "TableTopDecor": 5.4, "TeddyBear": 0.9, "TennisRacket": 0.31, "TissueBox": 0.35,
    "ToiletPaper": 0.2, "Tomato": 0.12, "Towel": 0.57, "Vase": 1.0, "Watch": 0.07, "WateringCan": 1.0,
    "WineBottle": 1.2,
}  # fmt: skip
"""What an agent can take into its hand."""
MOVEABLE = {
    "ArmChair": 28.3, "Bed": 30.0, "Chair": 10.0, "CoffeeMachine": 5.0, "CoffeeTable": 11.0, "Desk": 34.0,
    "DeskLamp": 2.06, "Desktop": 2.54, "DiningTable": 85.0, "DogBed": 0.98, "Dresser": 57.0, "FloorLamp": 3.93,
    "GarbageBag": 3.5, "GarbageCan": 0.7, "HousePlant": 3.0, "LaundryHamper": 1.55, "Microwave": 7.0,
    "Ottoman": 10.0, "RoomDecor": 2.72, "Safe": 10.0, "ShelvingUnit": 22.0, "SideTable": 11.0, "Sofa": 104.0,
    "Stool": 3.18, "TVStand": 11.0, "Television": 9.83, "Toaster": 5.0, "VacuumCleaner": 6.8,
}  # fmt: skip
"""What is too heavy for a hand, but not fixed."""
